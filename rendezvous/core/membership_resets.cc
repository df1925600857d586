#include <algorithm>

#include "rendezvous/core/membership_state.h"

// What changed the membership, and how long each change took: for status, the log, and the reason
// of a job that fails again and again.
namespace elastic::internal {

namespace {
// A lost host takes hundreds of members with it; the first few tell what happened.
constexpr size_t kCausesShown = 4;
constexpr int kPlacesShown = 8;

// Equal crashes are one cause, with their ranks.
std::string Join(const std::vector<Cause>& causes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Cause& cause : causes) {
    const auto equal = std::ranges::find_if(
        groups, [&](const auto& group) { return cause.crash && group.first == cause.text; });
    auto& group = equal != groups.end() ? *equal : groups.emplace_back(cause.text, 0);
    if (!cause.who.empty()) {
      group.second.push_back(cause.who);
    }
  }
  std::string text;
  for (size_t i = 0; i < groups.size() && i < kCausesShown; ++i) {
    const auto& [how, who] = groups[i];
    text += StrCat(i == 0 ? "" : "; ", SomeNames(who), who.empty() ? "" : " ", how);
  }
  if (groups.size() > kCausesShown) {
    text += StrCat("; and ", groups.size() - kCausesShown, " more");
  }
  return text;
}
}  // namespace

Reset* Membership::State::OpenReset() {
  const bool open = !resets.empty() && resets.back().view.to.value == 0;
  return open ? &resets.back() : nullptr;
}

void Membership::State::AddReset(Reset reset) {
  reset.view.cause = Join(reset.causes);
  resets.push_back(std::move(reset));
  ++resets_total;
  if (resets.size() > kResetsKept) {
    resets.pop_front();
  }
}

// One cause counts as one reset (P18): everything that breaks one generation is one entry.
void Membership::State::AddCause(Cause cause) {
  Reset* reset = OpenReset();
  if (reset == nullptr || reset->view.from != installed->id.number) {
    Reset first;
    first.view.from = installed->id.number;
    first.view.size_before = static_cast<int>(members.size());
    first.causes = {std::move(cause)};
    AddReset(std::move(first));
    return;
  }
  reset->causes.push_back(std::move(cause));
  reset->view.cause = Join(reset->causes);
}

// A generation can break without a loss or a broken connection.
void Membership::State::AddCauseUnlessKnown() {
  if (OpenReset() != nullptr) {
    return;
  }
  const StateVersion resume = lineage.ResumeOf(installed->id.number);
  const std::string text =
      SourceVanished()
          ? StrCat("the last holder of version ", ToString(resume),
                   " was lost before any member had it")
          : StrCat("generation ", ToString(installed->id.number), " was fenced by its agents");
  AddCause({.text = text});
}

// A death is often seen before its exit status, which says more.
void Membership::State::CompleteCause(const Worker& worker) {
  if (!worker.report.exit) {
    return;
  }
  for (Reset& reset : resets) {
    for (Cause& cause : reset.causes) {
      if (cause.open && cause.worker == worker.report.incarnation) {
        cause = {.worker = cause.worker,
                 .who = NameOf(worker),
                 .text = DeathText(worker),
                 .crash = true};
        reset.view.cause = Join(reset.causes);
      }
    }
  }
  if (ending && !ending->before_cause.empty() && !resets.empty()) {
    ending->reason = ending->before_cause + resets.back().view.cause;
  }
}

// The answers are in as soon as the decision waits for none of them, and again when more was asked.
void Membership::State::NoteAnswers(WaitReason waits_for) {
  if (waits_for == WaitReason::kFenceAnswers || waits_for == WaitReason::kCommitting) {
    answered.reset();
  } else if (!answered) {
    answered = now;
  }
}

void Membership::State::CloseReset(const Roster& roster) {
  if (Reset* reset = OpenReset()) {
    ResetView& view = reset->view;
    view.to = roster.id.number;
    view.size_after = roster.size();
    view.resumed = roster.resume;
    view.answers = answered.value_or(now) - broken_since.value_or(now);
    view.form = now - answered.value_or(now);
    reset->installed = now;
  }
}

// `generation 2: 2 members (ranks 0-1 at a:0, c:0), from step 3, version (1, 3)`
std::string Membership::State::Announcement(const Roster& roster, const std::string& from) const {
  const int size = roster.size();
  std::string text = StrCat("generation ", ToString(roster.id.number), ": ", Members(size));
  if (size <= kPlacesShown) {
    std::string places;
    for (const RosterEntry& entry : roster.entries) {
      if (entry.role == Role::kWorker) {
        places += StrCat(places.empty() ? "" : ", ", entry.host, ":", entry.slot);
      }
    }
    text += size == 1 ? StrCat(" (rank 0 at ", places, ")")
                      : StrCat(" (ranks 0-", size - 1, " at ", places, ")");
  }
  return StrCat(text, ", ", from);
}

}  // namespace elastic::internal
