#include "worker_runtime/core/worker_core.h"

#include <utility>

#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

WorkerCore::WorkerCore(WorkerIncarnation self) : state_(std::make_unique<State>(self)) {}
WorkerCore::~WorkerCore() = default;

WorkerActions WorkerCore::Step(const WorkerEvent& event) {
  state_->actions.clear();
  if (!state_->ended) {
    std::visit([this](const auto& alternative) { state_->On(alternative); }, event);
    state_->LeaveIfStopped();
  }
  return std::exchange(state_->actions, {});
}

Phase WorkerCore::phase() const {
  const State& state = *state_;
  if (state.finished || state.ended) {
    return Phase::kFinished;
  }
  if (state.stage != CommitStage::kIdle && state.stage != CommitStage::kAwaiting) {
    return Phase::kCommitting;
  }
  if (state.call.valid() && !state.continuing.valid()) {
    return Phase::kOutside;
  }
  if (state.word.generation.value == 0) {
    return Phase::kWaiting;
  }
  return state.fetch.accepted ? Phase::kRestoring : Phase::kEntering;
}

// Nothing is given out after it, so that an error cannot be followed by a commit.
void WorkerCore::State::Fail(std::string message) {
  ended = true;
  Emit(worker_action::Fatal{.message = std::move(message), .of_program = false});
}

void WorkerCore::State::FailProgram(std::string message) {
  ended = true;
  Emit(worker_action::Fatal{.message = std::move(message), .of_program = true});
}

}  // namespace elastic::internal
