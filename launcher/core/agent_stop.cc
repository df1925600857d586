// Ends: a stop that was asked for, the orphan limit, a launcher that is gone (P20, P21, P23).
#include <algorithm>

#include "launcher/core/agent_state.h"
#include "rendezvous/base/planted.h"

namespace elastic::internal {

// Deadlines count from the sending of the newest report that the server acknowledged, never from
// the arrival of its answer: the server counts from receipt (P23).
void AgentCore::State::Acknowledge(uint64_t report) {
  const auto found = sent.find(report);
  if (found != sent.end() && found->second > acked_at) {
    acked_at = found->second;
    if (!Planted(PlantedBug::kOrphanLimitIgnored)) {
      Emit(agent_action::StampDeadline{acked_at + settings.orphan_limit});
    }
  }
  sent.erase(sent.begin(), sent.upper_bound(report));
  acked_report = std::max(acked_report, report);
  empty_acked = empty_report != 0 && report >= empty_report;
}

void AgentCore::State::CheckDeadlines() {
  if (ending == Ending::kNo && now >= acked_at + settings.orphan_limit &&
      !Planted(PlantedBug::kOrphanLimitIgnored)) {
    KillAllAndEnd(Ending::kOrphaned, "no server of this job answered for " +
                                         FormatDuration(settings.orphan_limit) + " (orphan limit)");
  }
  if (kill_at.has_value() && now >= *kill_at) {
    kill_at.reset();
    SignalAll(9);
  }
  for (auto& [incarnation, worker] : workers) {
    if (worker.kill_at.has_value() && now >= *worker.kill_at) {
      worker.kill_at.reset();
      kills.push_back({worker.process, 9});
      if (worker.cause == DeathCause::kExited) {
        Say(Severity::kWarning, NameOf(worker) + " has left the job and did not exit within " +
                                    FormatDuration(settings.grace_period) +
                                    " (--grace-period): killed");
      }
    }
  }
}

void AgentCore::State::Stop(StopMode mode, const std::string& reason) {
  if (stop == StopMode::kNone) {
    Say(Severity::kInfo, "stopping the workers on " + settings.host + ": " + reason);
  }
  stop = mode;
  if (mode == StopMode::kImmediate) {
    kill_at.reset();
    SignalAll(9);
  } else {
    kill_at = now + settings.grace_period;
    for (auto& [incarnation, worker] : workers) {
      worker.kill_at.reset();  // the stop's end counts for all
      if (worker.ready && !worker.reaped) {
        Emit(agent_action::TellStop{worker.process});
      }
    }
    SignalAll(15);
  }
  dirty = true;
}

void AgentCore::State::SignalAll(int signal) {
  for (const auto& [incarnation, worker] : workers) {
    if (worker.spawned && !worker.reaped) {
      kills.push_back({worker.process, signal});
    }
  }
}

void AgentCore::State::KillAllAndEnd(Ending why, const std::string& reason) {
  if (ending == Ending::kSuperseded || ending == Ending::kOrphaned) {
    return;
  }
  Say(Severity::kError, "killing the workers on " + settings.host + ": " + reason);
  ending = why;
  kill_at.reset();
  SignalAll(9);
}

void AgentCore::State::On(const agent_event::LauncherGone& event) {
  if (ending != Ending::kNo) {
    return;
  }
  ending = Ending::kLauncherGone;
  if (stop == StopMode::kNone) {
    Stop(StopMode::kGraceful, event.reason);
  }
}

// Nothing comes from this server any more. In a stop that is how its end may show.
void AgentCore::State::On(const agent_event::Refused& event) {
  connected = false;
  if (event.code == StatusCode::kAborted) {
    KillAllAndEnd(Ending::kSuperseded, event.message);
  } else if (ending == Ending::kNo && stop == StopMode::kNone) {
    ending = Ending::kRefused;
    Say(Severity::kError, "the server refuses the agent of " + settings.host + ": " +
                              event.message + "; its workers are stopped");
    Stop(StopMode::kGraceful, "the server refuses this agent");
  }
}

void AgentCore::State::On(const agent_event::CopiesServed& event) {
  copies = event.endpoint;
  dirty = true;
}

void AgentCore::State::On(const agent_event::TimePassed&) {
  if (connected && next_beat.has_value() && now >= *next_beat) {
    dirty = true;
  }
}

// An agent that was told to stop stays until the server knows that all are gone, or is gone itself.
void AgentCore::State::EndIfEmpty() {
  const bool empty =
      std::ranges::none_of(workers, [](const auto& entry) { return entry.second.running(); });
  const bool told = stop != StopMode::kNone && (empty_acked || !connected);
  if (!empty || ended || (ending == Ending::kNo && !told)) {
    return;
  }
  ended = true;
  const bool in_order = ending == Ending::kNo || ending == Ending::kLauncherGone;
  Emit(agent_action::EndAgent{in_order ? 0 : 1});
}

std::optional<Instant> AgentCore::NextDeadline() const {
  const State& state = *state_;
  if (state.ended) {
    return std::nullopt;
  }
  std::optional<Instant> next;
  const auto consider = [&next](Instant at) { next = next.has_value() ? std::min(*next, at) : at; };
  if (state.ending == Ending::kNo && !Planted(PlantedBug::kOrphanLimitIgnored)) {
    consider(state.acked_at + state.settings.orphan_limit);
  }
  if (state.connected && state.next_beat.has_value() && !state.report_asked) {
    consider(*state.next_beat);
  }
  if (state.kill_at.has_value()) {
    consider(*state.kill_at);
  }
  for (const auto& [incarnation, worker] : state.workers) {
    if (worker.kill_at.has_value()) {
      consider(*worker.kill_at);
    }
  }
  if (state.spawn_allowed && state.ending == Ending::kNo && state.stop == StopMode::kNone) {
    for (const int32_t slot : state.wanted) {
      const auto found = state.slots.find(slot);
      if (found != state.slots.end() && found->second.spawn_at > state.now) {
        consider(found->second.spawn_at);
      }
    }
  }
  return next;
}

}  // namespace elastic::internal
