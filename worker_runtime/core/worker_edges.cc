// Edges that fail before they were used: made anew while that can help, then somebody is named
// (P18).
#include <algorithm>

#include "rendezvous/base/limits.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

namespace {

Duration PauseAfter(int failures) {
  Duration pause = kEdgeRetryDelayFirst;
  for (int i = 1; i < failures && pause < kEdgeRetryDelayMax; ++i) {
    pause *= 2;
  }
  return std::min(pause, kEdgeRetryDelayMax);
}

}  // namespace

void WorkerCore::State::On(const worker_event::EdgesLost& event) {
  const auto found = rosters.find(event.generation.number);
  if (found != rosters.end() && found->second.id == event.generation) {
    edges_up.erase(event.generation.number);
  }
}

// A generation that is being prepared waits for nobody, so its edges are tried until they stand or
// it is over. In one that this word names the others wait: too many failures of one cause name a
// peer, or, when the cause is on this side, make room for a replacement.
void WorkerCore::State::On(const worker_event::EdgesFailed& event) {
  const auto found = rosters.find(event.generation.number);
  if (found == rosters.end() || found->second.id != event.generation) {
    return;  // over
  }
  edges_up.erase(event.generation.number);
  const bool inside = RosterOfWord() == &found->second;
  if (inside && word.fenced) {
    return;
  }
  EdgeTries& tries = edge_tries[event.generation.number];
  ++tries.failures;
  const bool counts = inside && !event.over_there;
  if (counts && ++tries.by_cause[event.peer] >= kEdgeTriesMax) {
    GiveUpEdge(event);
    return;
  }
  Emit(worker_action::RetryEdges{event.generation, PauseAfter(tries.failures)});
}

void WorkerCore::State::GiveUpEdge(const worker_event::EdgesFailed& event) {
  const std::string what = event.what + " (" + std::to_string(kEdgeTriesMax) + " tries)";
  if (!event.peer) {
    Fail("this worker gives up, to be replaced: " + what);
    return;
  }
  if (accused.insert(*event.peer).second) {
    Emit(worker_action::Warn{"accusing worker " + ToString(*event.peer) + ": " + what});
    Emit(worker_action::ReportAccusation{{event.generation, *event.peer}});
  }
}

// What failed while it was only prepared is tried at once when others begin to wait for it.
void WorkerCore::State::HurryEdges(const GenerationId& generation) {
  if (edge_tries.erase(generation.number) > 0) {
    Emit(worker_action::RetryEdges{generation, Duration::zero()});
  }
}

void WorkerCore::State::ForgetEdges(GenerationNumber up_to) {
  std::erase_if(connecting, [&](GenerationNumber number) { return number <= up_to; });
  std::erase_if(edges_up, [&](GenerationNumber number) { return number <= up_to; });
  std::erase_if(edge_tries, [&](const auto& entry) { return entry.first <= up_to; });
}

}  // namespace elastic::internal
