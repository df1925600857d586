#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

// W1 the program computes only in the unfenced generation that the word names, or its successor is
//    being entered inside commit().
// W2 between commits of a generation the held version is the word's (P3, P5).
// W3 `committing` stands in the word exactly while the copy of a commit or the taking of a state,
// or
//    the exchange after it, is under way.
// W4 a finished report belongs to the generation that the program's call is in (P29).
// W5 nothing is fetched by a worker that is in a generation and has its resume version.
// W6 only a member or a newcomer told by a holder is in a generation: the word's roster has it.
std::vector<std::string> WorkerCore::BrokenInvariants() const {
  const State& state = *state_;
  std::vector<std::string> broken;
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) {
      broken.emplace_back(what);
    }
  };
  if (state.ended || state.pending_cas.has_value()) {
    return broken;
  }
  const bool computing = state.call.valid() && !state.continuing.valid();
  const bool copying =
      state.stage == CommitStage::kCopying || state.stage == CommitStage::kFinishing;
  expect(!computing || (state.word_id == state.call && !state.word.fenced),
         "W1 the program computes in a generation that is over");
  if (computing && state.stage == CommitStage::kIdle && state.word.commits > 0) {
    expect(state.held.version == StateVersion{state.word.generation, state.word.commits},
           "W2 the held version is not the word's");
  }
  const bool taking =
      state.fetch.taking == TakeStage::kTaking || state.fetch.taking == TakeStage::kClearing;
  expect(state.word.committing == (copying || taking),
         "W3 `committing` without a commit under way");
  expect(!state.finished || (computing && state.finished_in == state.call),
         "W4 finished in another generation");
  expect(!computing || !state.fetch.generation.valid() ||
             state.fetch.generation.number > state.call.number,
         "W5 fetches what it has");
  const Roster* roster = state.RosterOfWord();
  expect(roster == nullptr || roster->Find(state.self) != nullptr,
         "W6 in a generation without being its member");
  return broken;
}

}  // namespace elastic::internal
