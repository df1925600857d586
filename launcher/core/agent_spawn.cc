// Processes for the slots that want one.
#include <algorithm>

#include "launcher/core/agent_state.h"
#include "rendezvous/base/restart_delay.h"

namespace elastic::internal {

// One process a slot: a successor waits until the one before is reaped, so that it finds the
// slot's device free, and until the server knows how it ended: orders from before can't tell
// whether one is wanted (a program that ends without joining must not run twice). A slot whose
// workers keep dying without a commit waits longer each time.
void AgentCore::State::SpawnWanted() {
  if (agent.value == 0 || !spawn_allowed || ending != Ending::kNo || stop != StopMode::kNone ||
      finished.has_value() || spawn_error.has_value()) {
    return;
  }
  for (const int32_t slot : wanted) {
    const bool taken = std::ranges::any_of(workers, [this, slot](const auto& entry) {
      const AgentWorker& worker = entry.second;
      const bool known = worker.exit_told != 0 && worker.exit_told <= acked_report;
      return worker.slot == slot && (worker.running() || !known);
    });
    if (taken || slot < 0 || slot >= settings.slots || slots[slot].spawn_at > now) {
      continue;
    }
    AgentWorker worker;
    worker.incarnation = worker.process = {agent, ++counter};
    worker.slot = slot;
    worker.beat_at = now;
    Emit(agent_action::Spawn{worker.process, slot});
    workers.emplace(worker.incarnation, std::move(worker));
  }
}

void AgentCore::State::DelaySlot(int32_t slot, bool progressed) {
  AgentSlot& entry = slots[slot];
  entry.failures = progressed ? 0 : entry.failures + 1;
  entry.spawn_at = now + RestartDelayAfter(entry.failures);
}

void AgentCore::State::On(const agent_event::Spawned& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr) {
    return;
  }
  worker->spawned = true;
  worker->pid = event.pid;
  worker->beat_at = now;
  dirty = true;
  if (worker->lost || ending != Ending::kNo || stop == StopMode::kImmediate) {
    kills.push_back({worker->process, 9});
  } else if (stop == StopMode::kGraceful) {
    // An end of the grace period that has passed did not see it.
    kills.push_back({worker->process, kill_at.has_value() ? 15 : 9});
  }
}

void AgentCore::State::On(const agent_event::SpawnFailed& event) {
  const AgentWorker* worker = Of(event.process);
  if (worker == nullptr) {
    return;
  }
  Say(Severity::kError,
      "slot " + std::to_string(worker->slot) + " on " + settings.host + ": " + event.message);
  if (event.hopeless) {
    spawn_error = event.message;
    dirty = true;
  }
  DelaySlot(worker->slot, false);
  workers.erase(worker->incarnation);
}

}  // namespace elastic::internal
