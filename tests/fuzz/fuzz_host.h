#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "launcher/agent/control_words.h"
#include "launcher/agent/copy_server.h"
#include "launcher/core/agent_core.h"
#include "proto/local/control_page.h"
#include "rendezvous/base/unique_fd.h"
#include "worker_runtime/link/worker_page.h"

namespace elastic::internal {

// A host in one thread: AgentCore, a real control page for each process that it spawns, and the
// real copy server. Pages are used again, from run to run, since a fuzzer makes thousands a second.
class FuzzHost {
 public:
  static constexpr AgentIncarnation kAgent{7};

  FuzzHost();
  ~FuzzHost();

  // Fills in readings, carries out the actions, and serves copies as the agent does.
  void Feed(AgentEvent event);
  void Pass(Duration time) { now_ += time; }
  void Report();
  void Exit(WorkerIncarnation process, ExitStatus status);

  // ---- what a worker's process may write ----
  void Scribble(WorkerIncarnation process, size_t offset, std::span<const uint8_t> bytes);
  void WriteWord(WorkerIncarnation process, CommitWord word);
  void WriteIdentity(WorkerIncarnation process, const GenerationId& id);
  void WriteHeld(WorkerIncarnation process, const Held& held, uint64_t offset, uint64_t bytes);

  // Ends the process unless what the core promises others holds.
  void CheckPromises() const;

  // Those that run: whether they do is the value, so that the map can be stepped through.
  const std::map<WorkerIncarnation, bool>& processes() const { return processes_; }
  uint64_t reports() const { return reports_; }
  bool ended() const { return ended_; }

 private:
  struct Page;
  struct Spare;
  Page* Find(WorkerIncarnation process);
  void Carry(const AgentAction& action, std::vector<AgentEvent>& more);
  void ServeCopy(WorkerIncarnation process);
  void LookAsWorker(const Page& page) const;

  Instant now_;
  AgentCore core_;
  std::map<WorkerIncarnation, bool> processes_;
  std::map<WorkerIncarnation, std::unique_ptr<Page>> pages_;
  uint64_t reports_ = 0;
  bool ended_ = false;
};

}  // namespace elastic::internal
