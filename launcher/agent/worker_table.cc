#include "launcher/agent/worker_table.h"

#include <algorithm>
#include <fstream>

#include "launcher/agent/agent_limits.h"
#include "launcher/base/process_tree.h"

namespace elastic::internal {

namespace {

// The value of kWorkerVariable that the process was started with; empty if it has none.
std::string ReadMark(pid_t pid) {
  const std::string name = StrCat(kWorkerVariable, "=");
  std::ifstream file(StrCat("/proc/", pid, "/environ"));
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable.starts_with(name)) {
      return variable.substr(name.size());
    }
  }
  return {};
}

}  // namespace

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

const WorkerEntry* WorkerTable::FindMark(std::string_view mark) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return MarkOf(entry.first) == mark; });
  return found == entries_.end() || found->second.exited ? nullptr : &found->second;
}

// Its environment is read once, not once for each worker: when many start at a time, each of them
// comes here.
const WorkerEntry* WorkerTable::OwnerOfChild(pid_t pid, pid_t group) const {
  if (const WorkerEntry* const entry = FindMark(ReadMark(pid))) {
    return entry;
  }
  for (const auto& [process, entry] : entries_) {
    if (entry.pid == group && !entry.exited) {
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
      return OwnerOfChild(pid, stat->group);
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
    if (!ReadProcessStat(pid)) {
      return FailedPreconditionError(
          StrCat("process ", pid, " has ended before the agent answered it"));
    }
    return FailedPreconditionError(
        StrCat("process ", pid,
               " was not started by this agent: only the workers of the job may "
               "connect; unset ELASTIC_AGENT_SOCKET to run the program alone"));
  }
  return std::optional<WorkerIncarnation>(owner->process);
}

}  // namespace elastic::internal
