// Fencing: which local words may not commit any more, and when that is answered (P5, P12).
#include <algorithm>

#include "launcher/core/agent_state.h"
#include "rendezvous/base/planted.h"

namespace elastic::internal {

// Looks at everything anew instead of reacting to single events: an event may have been the last
// of several that were needed, in any order.
void AgentCore::State::Evaluate() {
  SpreadMarks();
  // Fences of all workers first: a survivor that hears late loses more time than any other.
  for (auto& [incarnation, worker] : workers) {
    EvaluateWord(worker);
  }
  ConfirmDeaths();
  OfferAgain();
  Install();
  for (auto& [incarnation, worker] : workers) {
    if (worker.ready && !worker.lost && !worker.awaiting_page && !ResetWord(worker)) {
      Deliver(worker);
    }
  }
  RaiseClosed();
  ForgetOldRosters();
  ForgetOldStores();
}

// A local death fences the generations that have that incarnation, those told of later included.
// After the record nobody needs to be fenced any more: the members are leaving.
void AgentCore::State::SpreadMarks() {
  if (finished.has_value()) {
    return;
  }
  for (const WorkerIncarnation dead : lost) {
    for (const auto& [number, roster] : rosters) {
      if (roster.Find(dead) != nullptr && marks.insert({number, dead}).second) {
        dirty = true;
      }
    }
  }
}

bool AgentCore::State::Closed(GenerationNumber generation) const {
  if (generation <= closed_wanted && !Planted(PlantedBug::kMarkWithoutClosed)) {
    return true;
  }
  const auto first = marks.lower_bound(Mark{generation, {}});
  return first != marks.end() && first->generation == generation;
}

// True if an action for it is under way.
bool AgentCore::State::EvaluateWord(AgentWorker& worker) {
  if (!worker.open() || worker.awaiting_page) {
    return worker.awaiting_page;
  }
  const CommitWord& word = worker.word();
  if (word.generation.value == 0 || word.fenced) {
    return false;
  }
  // A lost worker's own word is fenced too: the process may live on for a moment.
  if (!Closed(word.generation) && !worker.lost) {
    return false;
  }
  worker.awaiting_page = true;
  Emit(agent_action::Fence{worker.process, word.generation});
  return true;
}

// The fence is answered for a worker when its word cannot commit at or below the closed number.
bool AgentCore::State::Answered(const AgentWorker& worker) const {
  if (!worker.open()) {
    return true;
  }
  if (worker.awaiting_page) {
    return false;
  }
  const CommitWord& word = worker.word();
  if (Planted(PlantedBug::kMarkWithoutClosed) && !Closed(word.generation)) {
    return true;
  }
  if (word.generation.value == 0) {
    return !worker.ready || word.commits >= closed_wanted.value;
  }
  return word.generation > closed_wanted || word.final_after_fence();
}

void AgentCore::State::RaiseClosed() {
  if (closed_wanted <= closed) {
    return;
  }
  const bool all =
      std::ranges::all_of(workers, [this](const auto& entry) { return Answered(entry.second); });
  if (all) {
    closed = closed_wanted;
    dirty = true;
  }
}

}  // namespace elastic::internal
