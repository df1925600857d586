#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/base/mutex.h"
#include "rendezvous/client/agent_link.h"

namespace elastic::internal {

// For tests of the server: an agent whose workers are structs. It does at once and without a
// process what a real one brings about, and tells it through a real AgentLink.
class LittleAgent {
 public:
  struct Options {
    std::string server;
    std::string host;
    int32_t slots = 1;
    std::string job_id = "test-job";
    Duration beat_interval = std::chrono::milliseconds(50);
  };
  explicit LittleAgent(Options options);
  ~LittleAgent();

  // The worker in this slot has died by SIGKILL.
  void KillWorker(int32_t slot);
  // All its workers return from run with the state that they hold.
  void FinishWorkers();

  // Waits until it is so, with all of the agent's state as it is then. False after ten seconds.
  struct View {
    AgentReport report;
    Directive directive;  // newest
    AgentIncarnation agent;
    int registrations = 0;
    int losses = 0;
    Status refused;
  };
  bool WaitFor(const std::function<bool(const View&)>& condition);
  View Look();

 private:
  void Beat();
  void Apply(const Directive& directive) REQUIRES_LOCK(mutex_);
  void Spawn(int32_t slot) REQUIRES_LOCK(mutex_);
  void Enter(const Roster& roster) REQUIRES_LOCK(mutex_);
  void SendReport() REQUIRES_LOCK(mutex_);

  const Options options_;
  Mutex mutex_;
  ConditionVariable changed_;
  View view_ GUARDED_BY(mutex_);
  uint32_t spawned_ GUARDED_BY(mutex_) = 0;
  bool finishing_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<AgentLink> link_;
  std::thread beater_;
};

}  // namespace elastic::internal
