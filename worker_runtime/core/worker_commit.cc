// commit(): the agreement, the mark, the copy, the next number (P5, P6, P25).
#include "rendezvous/base/check.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

void WorkerCore::State::On(const worker_event::CommitWanted& event) {
  ELASTIC_CHECK(stage == CommitStage::kIdle);
  if (!call.valid() || event.generation != call || finished) {
    Emit(worker_action::CommitReturns{false});
    return;
  }
  stage = CommitStage::kAwaiting;
  committing = call;
  Emit(worker_action::AwaitAgreement{call});
}

// The agreement is a world collective that every rank entered after its previous commit, so ranks
// differ by at most one commit (P6). It names a boundary only if all contributed the same (V7).
void WorkerCore::State::On(const worker_event::Agreed& event) {
  if (stage != CommitStage::kAwaiting || event.generation != committing) {
    return;
  }
  if (old_connections) {
    // All ranks are in this generation now, so nobody can take it for a loss.
    const GenerationNumber before{event.generation.number.value - 1};
    old_connections = false;
    Emit(worker_action::Disconnect{before});
    ForgetEdges(before);
  }
  boundary = event.smallest == event.largest ? event.smallest : 0;
  if (boundary != 0 && boundary != contributed) {
    Fail("agreement of generation " + ToString(event.generation) + " named " +
         std::to_string(boundary) + ", this rank contributed " + std::to_string(contributed) +
         ": ranks do not call commit equally often");
    return;
  }
  if (word.commits >= CommitWord::kCommitsMax) {
    Fail("too many commits in one generation: " + std::to_string(word.commits));
    return;
  }
  stage = CommitStage::kMarking;
  EmitCas({word.generation, word.commits, true, false}, committing);
}

void WorkerCore::State::On(const worker_event::CopyDone& event) {
  ELASTIC_CHECK(stage == CommitStage::kCopying);
  ELASTIC_CHECK((event.state.version == StateVersion{word.generation, word.commits + 1}));
  held = event.state;
  stage = CommitStage::kFinishing;
  EmitCas({word.generation, word.commits + 1, false, word.fenced}, committing);
}

void WorkerCore::State::EndCommit(bool committed) {
  stage = CommitStage::kIdle;
  boundary = 0;
  committing = {};
  Emit(worker_action::CommitReturns{committed});
}

}  // namespace elastic::internal
