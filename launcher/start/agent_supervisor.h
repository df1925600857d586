#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/output_relay.h"
#include "launcher/start/local_agent.h"
#include "launcher/start/restart_delay.h"

namespace elastic::internal {

// A killed process ends within moments, unless it is in an uninterruptible wait (a network file
// system that does not answer) or a debugger holds it: then nobody can say when.
inline constexpr Duration kKilledAgentLimit = std::chrono::seconds(5);

// Keeps one agent per host running: starts them, watches their pidfds, starts again the one that
// died. Lives on its owner's thread and never blocks; the owner's poll loop feeds it, also when
// SIGCHLD comes. Makes this process the one that orphans are handed to (PR_SET_CHILD_SUBREAPER):
// the guardian of a dead agent outlives it and would stay a zombie in a container without an init.
class AgentSupervisor {
 public:
  struct Options {
    std::string program;  // path of elastic-agent
    std::vector<AgentBootstrap> agents;
  };
  struct Callbacks {
    // An agent could not be started, or has ended by itself, and will be started again: `it ended
    // with exit code 7, started again at once`.
    std::function<void(const std::string& host, const std::string& message)> trouble;
  };
  // `output` must outlive the supervisor.
  AgentSupervisor(Options options, Callbacks callbacks, OutputRelay& output);
  // Kills what still runs and reaps it; leaves after kKilledAgentLimit what does not end even then.
  ~AgentSupervisor();

  // Starts every agent that is due at `now`.
  void StartDue(Instant now);
  // When StartDue wants to be called next; nullopt: nothing waits.
  std::optional<Instant> NextDeadline() const;

  // Adds what the loop should wait for.
  void AddPollEntries(std::vector<pollfd>& entries) const;
  // Reaps agents that have ended and goes on with bootstraps; cheap when nothing happened.
  void HandleEvents(Instant now);

  // From now on an agent that ends stays ended.
  void StopRestarting();
  // Tells every agent that the launcher is done (P21).
  void CloseInputs();
  // SIGKILL to the agents; their guardians then kill what is left of the workers.
  void Kill();
  int running() const;
  // Waits no longer for the agents that still run; `agent of host a, pid 123, state D` for each.
  std::vector<std::string> LeaveBehind();
  // An agent was lost, and what it left behind has not ended yet.
  bool HasOrphans() const;

 private:
  struct Slot {
    AgentBootstrap bootstrap;
    LocalAgent agent;
    Instant started;
    RestartDelay delay;
    // Inputs of dead agents, newest last. A guardian outlives its agent by what it takes to kill
    // the workers; if it saw this input closed it would take the launcher for gone and remove the
    // sockets of the job, under the feet of the next agent.
    std::deque<UniqueFd> former_inputs;
    std::optional<Instant> start_at;
  };

  void Start(Slot& slot, Instant now);
  void ReapOrphans(bool agent_died);
  void KillStrays() const;
  void HandleDeath(Slot& slot, const std::string& what, Instant now);

  const std::string program_;
  Callbacks callbacks_;
  OutputRelay& output_;
  std::vector<Slot> slots_;
  bool restarting_ = true;
  bool lost_agent_ = false;
};

}  // namespace elastic::internal
