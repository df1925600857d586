#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent/control_words.h"
#include "launcher/agent/guardian_client.h"

namespace elastic::internal {

// What the driver has of one worker process, from the request to spawn it until Forget. All parts
// of the agent name it by the incarnation that it was spawned as (launcher/core/agent_core.h).
struct WorkerEntry {
  WorkerIncarnation process;
  WorkerIncarnation incarnation;  // present one
  int32_t slot = 0;
  int64_t pid = 0;  // of the slot's process; 0: not spawned yet
  WorkerDescriptors descriptors;
  std::unique_ptr<PageView> page;
  pid_t runtime_pid = 0;    // connected; may be a descendant of the slot's process
  bool watched = false;     // its owner mutex is known to the futex watch
  bool owner_gone = false;  // seen by the futex watch
  bool exited = false;
  uint64_t beats = 0;                         // at the last look
  std::map<GenerationNumber, int32_t> ranks;  // in rosters delivered, until one is entered
};

class WorkerTable {
 public:
  WorkerTable(std::string job_id, pid_t guardian)
      : job_id_(std::move(job_id)), guardian_(guardian) {}

  WorkerEntry& Add(WorkerIncarnation process, int32_t slot);
  WorkerEntry* Find(WorkerIncarnation process);
  void Remove(WorkerIncarnation process) { entries_.erase(process); }
  std::map<WorkerIncarnation, WorkerEntry>& entries() { return entries_; }

  // The worker whose process is `pid` or an ancestor of it. A child of the guardian that is none of
  // the known ones, an orphan or one whose spawn is under way, is matched by its environment and
  // its process group as the guardian does. nullopt: unknown, but a spawn is under way.
  // Errors: FAILED_PRECONDITION for a stranger, and for a process that has ended.
  StatusOr<std::optional<WorkerIncarnation>> Identify(pid_t pid) const;
  // Value of kWorkerVariable.
  std::string MarkOf(WorkerIncarnation process) const;

 private:
  const WorkerEntry* OwnerOf(pid_t pid) const;
  const WorkerEntry* OwnerOfChild(pid_t pid, pid_t group) const;
  const WorkerEntry* FindMark(std::string_view mark) const;

  const std::string job_id_;
  const pid_t guardian_;
  std::map<WorkerIncarnation, WorkerEntry> entries_;
};

}  // namespace elastic::internal
