// Ways out of run(): the finished handshake and leaving (P25, P29).
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

// A return out of a generation that is over proves nothing: the final state may have been lost with
// it. The next Open calls the function again.
void WorkerCore::State::On(const worker_event::FunctionReturned& event) {
  if (!call.valid() || event.generation != call || finished) {
    return;
  }
  finished = true;
  finished_in = call;
  Emit(worker_action::ReportFinished{call, event.state});
}

// The record may come after a death has fenced the word: all had reported before it.
void WorkerCore::State::On(const worker_event::FinishRecorded& event) {
  if (stage != CommitStage::kIdle) {
    EndCommit(false);
  }
  ended = true;
  Emit(worker_action::RunReturns{finished_in != event.record.generation});
}

// No generation is formed any more once the operator stops the job, so who is in none waits for
// nothing.
void WorkerCore::State::LeaveIfStopped() {
  const bool busy = call.valid() || stage != CommitStage::kIdle || pending_cas.has_value() ||
                    fetch.taking != TakeStage::kNone;
  if ((stop_wanted & kStopByOperator) == 0 || busy || ended) {
    return;
  }
  ended = true;
  Emit(worker_action::RunReturns{true});
}

void WorkerCore::State::On(const worker_event::LeaveTold&) {
  if (call.valid()) {
    Emit(worker_action::Close{call});
  }
  if (stage != CommitStage::kIdle || continuing.valid()) {
    EndCommit(stage != CommitStage::kAwaiting && stage != CommitStage::kMarking);
  }
  ended = true;
  Emit(worker_action::RunReturns{true});
}

}  // namespace elastic::internal
