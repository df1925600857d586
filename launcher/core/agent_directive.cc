// What the server wants (P2, P24): whole states, of which the newest counts.
#include <algorithm>

#include "launcher/core/agent_state.h"
#include "rendezvous/base/planted.h"

namespace elastic::internal {

void AgentCore::State::Follow(ServerIncarnation next) {
  if (next == server) {
    return;
  }
  server = next;
  acked_directive = 0;
  acked_report = 0;  // what its predecessor was told, this one need not know
  store.ServerIsNew();
}

void AgentCore::State::On(const agent_event::Registered& event) {
  if (event.server < server) {
    return;  // its streams are refused; this one was welcomed before the server could know
  }
  Follow(event.server);
  connected = true;
  next_beat = now + kAgentBeatInterval;
  if (agent.value == 0) {
    agent = event.agent;
    if (!Planted(PlantedBug::kOrphanLimitIgnored)) {
      Emit(agent_action::StampDeadline{acked_at + settings.orphan_limit});
    }
  } else if (event.agent != agent) {
    KillAllAndEnd(Ending::kSuperseded, "the server issued incarnation " +
                                           std::to_string(event.agent.value) + " for this host");
  }
  dirty = true;
}

void AgentCore::State::On(const agent_event::StreamLost&) { connected = false; }

void AgentCore::State::On(const agent_event::DirectiveCame& event) {
  const Directive& directive = event.directive;
  if (agent.value == 0 || ending != Ending::kNo || directive.server < server) {
    return;  // a deposed server's word counts for nothing (P2)
  }
  if (directive.agent != agent) {
    if (directive.agent > agent) {
      KillAllAndEnd(Ending::kSuperseded, "a newer agent registered for this host");
    }
    return;
  }
  if (directive.server == server && directive.sequence <= acked_directive) {
    return;
  }
  Follow(directive.server);
  acked_directive = directive.sequence;
  Acknowledge(directive.acked_report);
  AnswerStore(store.Take(directive));

  told_all = told_all || !directive.relearning;
  closed_wanted = std::max(closed_wanted, directive.closed);
  marks.insert(directive.marks.begin(), directive.marks.end());
  if (directive.finished.has_value()) {
    finished = directive.finished;
  }
  if (directive.installed.has_value()) {
    TakeInstalled(*directive.installed);
  }
  TakePrepared(directive.prepared);
  wanted = directive.slots;
  spawn_allowed = directive.spawn_allowed;

  // Killed, so that the report of its death, for which the server waits, becomes true (P13).
  for (const WorkerIncarnation removed : directive.remove) {
    if (AgentWorker* worker = Find(removed)) {
      Lose(*worker, DeathCause::kMarkedByServer);
    }
  }
  for (const WorkerIncarnation returning : directive.offer_again) {
    if (AgentWorker* worker = Find(returning)) {
      worker->returning = true;
    }
  }
  for (const WorkerIncarnation gone : directive.forget) {
    const AgentWorker* worker = Find(gone);
    if (worker == nullptr || !worker->reaped) {
      continue;
    }
    if (!worker->offered_again) {
      Emit(agent_action::Forget{worker->process});
    }
    workers.erase(gone);
  }
  if (directive.stop > stop) {
    stop_reason = directive.stop_reason;
    stop_exit_code = directive.stop_exit_code;
    Stop(directive.stop, directive.stop_reason);
  }
}

}  // namespace elastic::internal
