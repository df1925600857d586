#include <algorithm>
#include <chrono>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

namespace {
Wait WaitForStart(const Membership::State& state) {
  Wait wait{.reason = WaitReason::kAgents,
            .until = state.PatienceEnds(),
            .first = !state.FirstRoundIsOver()};
  for (const Host& host : state.hosts) {
    wait.want += 1;
    if (host.counted) {
      wait.have += 1;
    } else {
      wait.who.push_back(host.start_failure ? host.spec.name + " (" + *host.start_failure + ")"
                                            : host.spec.name);
    }
  }
  const int ready = static_cast<int>(state.Newcomers().size());
  const std::vector<std::vector<int32_t>> slots = state.WantedSlots();
  // A host without a wanted slot is waited for only if there are too few slots without it.
  bool missing = false;
  int planned = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    missing = missing || (!slots[i].empty() && !state.hosts[i].counted);
    planned += static_cast<int>(slots[i].size());
  }
  missing = missing || (planned < state.spec.np && !wait.who.empty());
  if (missing) {
    return wait;
  }
  wait = {.reason = WaitReason::kWorkersReady,
          .have = ready,
          .want = state.spec.np,
          .until = wait.until,
          .first = wait.first};
  for (size_t i = 0; i < slots.size(); ++i) {
    for (const int32_t slot : slots[i]) {
      const bool waits = std::ranges::any_of(state.workers, [&](const auto& entry) {
        return entry.second.host == static_cast<int>(i) && entry.second.report.slot == slot &&
               state.Waiting(entry.second);
      });
      if (!waits) {
        wait.who.push_back(StrCat(state.hosts[i].spec.name, ":", slot));
      }
    }
  }
  return wait;
}
}  // namespace

// The same answer as the decision uses, so that status never shows a reason that is not the real
// one.
Wait Membership::State::CurrentWait() const {
  if (ending || finished) {
    return {};
  }
  if (relearning) {
    return WaitForMemory();
  }
  if (!installed) {
    return WaitForStart(*this);
  }
  if (Broken()) {
    return Examine().wait;
  }
  Wait wait{.want = static_cast<int>(members.size())};
  for (const Worker* worker : members) {
    const bool done = all_entered ? worker->report.finished.has_value() : MemberEntered(*worker);
    if (done) {
      wait.have += 1;
    } else {
      wait.who.push_back(NameOf(*worker));
    }
  }
  if (!all_entered) {
    wait.reason = WaitReason::kEntry;
    wait.until = installed_at + spec.entry_timeout;
    return wait;
  }
  if (finish_seen) {
    wait.reason = WaitReason::kFinishReports;
    return wait;
  }
  return {};
}

namespace {
// A wait of a healthy job is over before anybody could read about it.
constexpr Duration kWaitToldAfter = std::chrono::seconds(1);
// Processes take their time to start, all the more on a busy machine.
constexpr Duration kStartToldAfter = std::chrono::seconds(5);

Duration ToldAfter(WaitReason reason) {
  switch (reason) {
    case WaitReason::kMinNp: return Duration::zero();
    case WaitReason::kAgents:
    case WaitReason::kWorkersReady: return kStartToldAfter;
    default: return kWaitToldAfter;
  }
}

bool SameText(const Wait& a, const Wait& b) {
  return a.reason == b.reason && a.have == b.have && a.want == b.want;
}
}  // namespace

// Why the job does not go on is told once it matters: too few workers at once, since only time or a
// person ends that; anything else when it has lasted. Told again when its numbers change, at most
// once in kWaitToldAfter. Agents that register and workers that become ready are one wait, the
// start.
void Membership::State::TellWait() {
  const Wait wait = CurrentWait();
  const auto of_start = [](WaitReason reason) {
    return reason == WaitReason::kAgents || reason == WaitReason::kWorkersReady;
  };
  const bool same =
      wait.reason == waiting.reason || (of_start(wait.reason) && of_start(waiting.reason));
  if (!same) {
    wait_due = now + ToldAfter(wait.reason);
  }
  const bool told = wait_told && SameText(wait, *wait_told);
  waiting = wait;
  if (wait.reason == WaitReason::kNone) {
    wait_told.reset();
    return;
  }
  if (told || now < wait_due) {
    return;
  }
  Say(wait.reason == WaitReason::kMinNp ? Severity::kWarning : Severity::kInfo,
      "waits: " + Describe(wait, now));
  wait_told = wait;
  wait_due = now + kWaitToldAfter;
}

}  // namespace elastic::internal
