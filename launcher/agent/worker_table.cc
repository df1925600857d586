#include "launcher/agent/worker_table.h"

#include <algorithm>

#include "launcher/agent/agent_limits.h"
#include "launcher/base/process_tree.h"

namespace elastic::internal {

WorkerEntry& WorkerTable::Add(WorkerIncarnation process, int32_t slot) {
  WorkerEntry& entry = entries_[process];
  entry.process = entry.incarnation = process;
  entry.slot = slot;
  return entry;
}

WorkerEntry* WorkerTable::Find(WorkerIncarnation process) {
  const auto found = entries_.find(process);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string WorkerTable::MarkOf(WorkerIncarnation process) const {
  return StrCat(job_id_, '/', process.agent.value, '.', process.counter);
}

const WorkerEntry* WorkerTable::OwnerOfOrphan(pid_t pid, pid_t group) const {
  for (const auto& [process, entry] : entries_) {
    if (entry.pid != 0 && !entry.exited &&
        (entry.pid == group ||
         HasEnvironment(pid, StrCat(kWorkerVariable, '=', MarkOf(process))))) {
      return &entry;
    }
  }
  return nullptr;
}

const WorkerEntry* WorkerTable::OwnerOf(pid_t pid) const {
  for (int i = 0; i < kAncestorsMax && pid > 1; ++i) {
    for (const auto& [process, entry] : entries_) {
      if (entry.pid == pid && !entry.exited) {
        return &entry;
      }
    }
    const std::optional<ProcessStat> stat = ReadProcessStat(pid);
    if (!stat) {
      return nullptr;
    }
    if (stat->parent == guardian_) {
      return OwnerOfOrphan(pid, stat->group);
    }
    pid = stat->parent;
  }
  return nullptr;
}

StatusOr<std::optional<WorkerIncarnation>> WorkerTable::Identify(pid_t pid) const {
  const WorkerEntry* const owner = OwnerOf(pid);
  if (owner == nullptr) {
    const bool spawning =
        std::ranges::any_of(entries_, [](const auto& entry) { return entry.second.pid == 0; });
    if (spawning) {
      return std::optional<WorkerIncarnation>();  // it may be faster than the guardian's word
    }
    return FailedPreconditionError(
        StrCat("process ", pid,
               " was not started by this agent: only the workers of the job may "
               "connect; unset ELASTIC_AGENT_SOCKET to run the program alone"));
  }
  if (owner->runtime_pid != 0) {
    return FailedPreconditionError(StrCat("process ", owner->runtime_pid,
                                          " has connected as the worker of slot ", owner->slot,
                                          ": one process per slot may use the runtime"));
  }
  return std::optional<WorkerIncarnation>(owner->process);
}

}  // namespace elastic::internal
