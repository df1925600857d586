#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/console.h"
#include "launcher/cli/job_end.h"
#include "launcher/cli/job_signals.h"
#include "launcher/start/agent_supervisor.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// The main thread of elastic-run: waits for signals, agents and the end of the job, all as
// descriptors of one poll. It decides nothing about the job; it asks the server to stop and makes
// sure that no promise of an end depends on a part that may hang.
class JobLoop {
 public:
  struct Options {
    std::string agent_program;
    std::vector<AgentBootstrap> agents;
    Duration grace_period;
    // What each step of a stop may take, beyond the grace period, before a harder one follows.
    Duration stop_margin = std::chrono::seconds(3);
    // After it an agent that was killed and does not end is left behind.
    Duration kill_limit = kKilledAgentLimit;
    std::function<void(Event)> post;  // tells the server
  };
  // All references must outlive the loop.
  JobLoop(Options options, JobSignals& signals, JobEnd& end, Console& console);

  // Runs the job; when it returns no agent is left but those that cannot be killed.
  JobEnd::Result Run();

 private:
  // How far the stop that the user asked for has gone; each signal, and each limit that passes,
  // takes the next step.
  enum class Stop { kNone, kGraceful, kImmediate, kGivenUp };

  // One wait and what follows from it; returns after `until` at the latest.
  void Turn(std::optional<Instant> until, bool await_end);
  void HandleSignals(Instant now);
  void StopFurther(Instant now, const std::string& why, int exit_code);
  // Sees that all agents end, by themselves or not.
  void EndAgents();
  // False if some still run at the limit.
  bool AwaitAgents(Instant limit);

  JobSignals& signals_;
  JobEnd& end_;
  Console& console_;
  const Duration grace_period_;
  const Duration stop_margin_;
  const Duration kill_limit_;
  const std::function<void(Event)> post_;
  AgentSupervisor agents_;

  Stop stop_ = Stop::kNone;
  int stop_exit_code_ = 0;
  std::optional<Instant> stop_limit_;  // when the next step of the stop is taken without a signal
};

}  // namespace elastic::internal
