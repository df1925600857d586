#include <map>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

// A1 `closed` is only claimed when it is true: no local word can commit at or below it (P12).
// A2 no open word stays unfenced in a generation that is closed here, but for a fence under way.
// A3 a slot has at most one process, and every incarnation is of this agent (P1).
// A4 a worker that is reported dead is lost and its word cannot change (P13).
// A5 the generation that is installed here is one that was told; nothing newer names a word.
// A6 a worker outside cannot enter a closed prepared generation: its word carries the number.
std::vector<std::string> AgentCore::BrokenInvariants() const {
  const State& state = *state_;
  std::vector<std::string> broken;
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) {
      broken.emplace_back(what);
    }
  };
  expect(state.closed <= state.closed_wanted, "A1 closed further than told");
  std::map<int32_t, int> processes;
  for (const auto& [incarnation, worker] : state.workers) {
    const CommitWord& word = worker.word();
    processes[worker.slot] += worker.running() ? 1 : 0;
    expect(incarnation.agent == state.agent, "A3 a worker of another agent");
    expect(!worker.dead || worker.lost, "A4 dead but not lost");
    if (!worker.open() || worker.awaiting_page) {
      continue;
    }
    const bool inside = word.generation.value != 0;
    expect(!inside || word.generation > state.closed || word.final_after_fence(),
           "A1 a word can commit in a closed generation");
    expect(!inside || word.fenced || !state.Closed(word.generation),
           "A2 an unfenced word in a closed generation");
    expect(!worker.ownerless || !inside || !word.final_after_fence() || worker.dead,
           "A4 a death is held back");
    expect(!inside || word.generation <= state.installed.number ||
               state.installed_target > state.installed.number,
           "A5 a word is ahead of the installed generation");
    expect(inside || !worker.ready || worker.lost || word.commits >= state.closed.value,
           "A6 a worker outside can enter a closed generation");
  }
  for (const auto& [slot, count] : processes) {
    expect(count <= 1, "A3 two processes in a slot");
  }
  return broken;
}

}  // namespace elastic::internal
