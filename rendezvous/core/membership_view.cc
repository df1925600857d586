#include <algorithm>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

namespace {
Wait WaitForStart(const Membership::State& state) {
  Wait wait{.reason = WaitReason::kAgents, .until = state.started + state.spec.elastic_timeout};
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
  missing = missing || planned < state.spec.np;
  if (missing) {
    return wait;
  }
  wait = {.reason = WaitReason::kWorkersReady,
          .have = ready,
          .want = state.spec.np,
          .until = state.started + state.spec.elastic_timeout};
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

JobState Membership::State::CurrentJobState() const {
  if (ending && ending->exit_code != 0) {
    return JobState::kFailed;
  }
  if (finished || ending) {
    return JobState::kFinished;
  }
  if (!installed) {
    return JobState::kStarting;
  }
  if (Broken()) {
    return JobState::kReforming;
  }
  if (!all_entered) {
    return JobState::kEntering;
  }
  return finish_seen ? JobState::kFinishing : JobState::kRunning;
}

Held Membership::State::NewestHeld() const {
  Held newest;
  for (const Worker* worker : members) {
    if (worker->reported && worker->report.held.version > newest.version) {
      newest = worker->report.held;
    }
  }
  return newest;
}

JobView Membership::State::View() const {
  JobView view{.job_id = spec.job_id,
               .state = CurrentJobState(),
               .wait = CurrentWait(),
               .generation = installed ? installed->id : GenerationId{},
               .size = static_cast<int>(members.size()),
               .np = spec.np,
               .min_np = spec.min_np,
               .max_np = spec.max_np,
               .newest = NewestHeld(),
               .resets_total = resets_total};
  view.wait_text = Describe(view.wait, now);
  for (const Host& host : hosts) {
    view.hosts.push_back(
        {.name = host.spec.name,
         .registered = host.agent.value != 0,
         .counted = host.counted,
         .agent = host.agent,
         .slots = host.spec.slots,
         .heartbeat_age = host.agent.value != 0 ? now - LastHeard(host.agent) : Duration{0}});
  }
  const auto add = [&](const Worker& worker, int32_t rank) {
    view.workers.push_back({.rank = rank,
                            .host = hosts[static_cast<size_t>(worker.host)].spec.name,
                            .report = worker.report});
  };
  for (size_t rank = 0; rank < members.size(); ++rank) {
    add(*members[rank], static_cast<int32_t>(rank));
  }
  for (const auto& [id, worker] : workers) {
    if (!installed || installed->Find(id) == nullptr) {
      add(worker, -1);
    }
  }
  for (const Reset& reset : resets) {
    view.resets.push_back(reset.view);
  }
  return view;
}

}  // namespace elastic::internal
