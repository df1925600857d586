// A host that comes back in time and is no member any more: its live processes are offered again as
// newcomers, under new names (P1, P13, P20).
#include <algorithm>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

// Only once the old name's last word is final: it is reported as that of a dead worker, and from
// then on the process can do nothing under that name.
void AgentCore::State::OfferAgain() {
  std::vector<AgentWorker> renamed;
  if (stop != StopMode::kNone || ending != Ending::kNo || finished.has_value()) {
    return;
  }
  for (auto& [incarnation, worker] : workers) {
    const CommitWord& word = worker.word();
    const bool over = word.generation.value == 0
                          ? word.commits >= closed_wanted.value
                          : word.final_after_fence() && word.generation <= closed_wanted;
    if (worker.returning && worker.ready && !worker.lost && !worker.awaiting_page && over) {
      renamed.push_back(Renamed(worker));
    }
  }
  for (AgentWorker& worker : renamed) {
    workers.emplace(worker.incarnation, std::move(worker));
  }
}

// What it holds goes with the process; the entry that stays behind is there for its last word.
AgentWorker AgentCore::State::Renamed(AgentWorker& before) {
  AgentWorker worker;
  worker.incarnation = {agent, ++counter};
  worker.process = before.process;
  worker.slot = before.slot;
  worker.pid = before.pid;
  worker.spawned = worker.ready = true;
  worker.reading = before.reading;
  worker.reading.word = {};
  worker.reading.generation = {};
  worker.awaiting_page = true;
  worker.beat_at = before.beat_at;
  worker.suspended = before.suspended;
  worker.progressed = before.progressed;
  worker.data = before.data;
  const uint32_t over = std::min(closed_wanted.value, CommitWord::kCommitsMax);
  Say(Severity::kInfo, NameOf(before) + " is offered again as worker " +
                           ToString(worker.incarnation) +
                           ": the job went on without it while this host was silent");
  Emit(agent_action::Reset{worker.process, before.word(), {}, CommitWord{{}, over, false, false}});
  Emit(agent_action::OfferAgain{worker.process, worker.incarnation});

  before.reading.held = {};
  before.offered_again = before.lost = before.ownerless = before.dead = before.reaped = true;
  before.cause = DeathCause::kOfferedAgain;
  lost.insert(before.incarnation);
  dirty = true;
  return worker;
}

}  // namespace elastic::internal
