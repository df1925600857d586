#include "rendezvous/core/job.h"

#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {
constexpr size_t kNamesShown = 8;
}  // namespace

std::string SomeNames(const std::vector<std::string>& who) {
  std::string text;
  for (size_t i = 0; i < who.size() && i < kNamesShown; ++i) {
    text += (i == 0 ? "" : ", ") + who[i];
  }
  if (who.size() > kNamesShown) {
    text += StrCat(" and ", who.size() - kNamesShown, " more");
  }
  return text;
}

namespace {

std::string Count(int count, const char* noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string What(const Wait& wait) {
  const std::string numbers = StrCat(wait.have, " of ", wait.want);
  switch (wait.reason) {
    case WaitReason::kNone: return "";
    case WaitReason::kAgents:
      return StrCat("need agents on ", Count(wait.want, "host"), " (-H), have ", wait.have);
    case WaitReason::kWorkersReady:
      return StrCat("need ", Count(wait.want, "worker"), wait.want == 1 ? " that is" : " that are",
                    " ready (-np), have ", wait.have);
    case WaitReason::kMinNp:
      return StrCat("need ", Count(wait.want, "worker"), " (--min-np), have ", wait.have);
    case WaitReason::kFenceAnswers: return "the old generation is not fenced everywhere yet";
    case WaitReason::kCommitting: return "a worker is still committing";
    case WaitReason::kPreparedMayBeEntered:
      return "a prepared generation may have been entered, and none of its members has answered";
    case WaitReason::kAllMembersSilent:
      return StrCat("no member of the old generation has answered (", numbers,
                    " known to be gone); the others may still run");
    case WaitReason::kResumeVersion: return "no holder of the committed state can be reached";
    case WaitReason::kEntry: return StrCat(numbers, " members have entered");
    case WaitReason::kFinishReports: return StrCat(numbers, " members have returned from run");
    case WaitReason::kMemory:
      return StrCat("this server was started again without its memory; ", numbers,
                    " hosts have spoken, and nothing is changed until all have");
  }
  return "";
}

std::string UntilFlag(const Wait& wait) {
  switch (wait.reason) {
    case WaitReason::kEntry: return " (--entry-timeout)";
    case WaitReason::kMemory: return " (--orphan-limit)";
    case WaitReason::kAllMembersSilent:
    case WaitReason::kFenceAnswers: return "";  // no flag changes it
    default: return wait.first ? " (--start-timeout)" : " (--elastic-timeout)";
  }
}
}  // namespace

std::string Missing(const Wait& wait) {
  return wait.who.empty() ? std::string() : "missing: " + SomeNames(wait.who);
}

std::string Describe(const Wait& wait, Instant now) {
  if (wait.reason == WaitReason::kNone) {
    return "";
  }
  std::string text = What(wait);
  if (const std::string missing = Missing(wait); !missing.empty()) {
    text += "; " + missing;
  }
  if (wait.until && *wait.until > now) {
    text += StrCat("; for another ", FormatDuration(*wait.until - now), UntilFlag(wait));
  }
  return text;
}

}  // namespace elastic::internal
