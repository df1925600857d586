#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

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
  if (finished) {
    return finished->final_state;
  }
  Held newest = newest_at_end;
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
