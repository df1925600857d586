#include "launcher/core/agent_core.h"

#include <algorithm>
#include <utility>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

AgentCore::AgentCore(AgentSettings settings, Instant now)
    : state_(std::make_unique<State>(std::move(settings), now)) {}
AgentCore::~AgentCore() = default;

// Deadlines come before the event: an agent that was stopped for long must not act on a message as
// if it had been there (P23). Then fences, then kills, then the report: the order of P12-P14.
AgentActions AgentCore::Step(Instant now, const AgentEvent& event) {
  State& state = *state_;
  state.now = std::max(state.now, now);
  state.actions.clear();
  if (state.ended) {
    return {};
  }
  state.CheckDeadlines();
  std::visit([&state](const auto& alternative) { state.On(alternative); }, event);
  state.Evaluate();
  for (const agent_action::Kill& kill : std::exchange(state.kills, {})) {
    state.Emit(kill);
  }
  state.SpawnWanted();
  if (state.dirty && !state.report_asked && state.agent.value != 0) {
    state.report_asked = true;
    state.Emit(agent_action::Report{});
  }
  state.dirty = false;
  state.EndIfEmpty();
  return std::exchange(state.actions, {});
}

AgentWorker* AgentCore::State::Find(WorkerIncarnation incarnation) {
  const auto found = workers.find(incarnation);
  return found == workers.end() ? nullptr : &found->second;
}

AgentWorker* AgentCore::State::Of(WorkerIncarnation process) {
  AgentWorker* newest = nullptr;
  for (auto& [incarnation, worker] : workers) {  // in the order in which they were named
    newest = worker.process == process ? &worker : newest;
  }
  return newest;
}

std::string AgentCore::State::NameOf(const AgentWorker& worker) const {
  return "worker " + ToString(worker.incarnation) + " (" + settings.host + ":" +
         std::to_string(worker.slot) + ", pid " + std::to_string(worker.pid) + ")";
}

}  // namespace elastic::internal
