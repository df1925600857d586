#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>
#include <string_view>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// Processes looked at in one round of killing; more are found in the next round.
inline constexpr int kTreeProcessesMax = 8192;
inline constexpr size_t kEnvironBytesMax = 4u << 20;  // searched for the mark of an orphan
// How long killing may take until what is left is reported as left behind (a process in an
// uninterruptible wait cannot be killed).
inline constexpr Duration kKillRoundsLimit = std::chrono::seconds(5);
inline constexpr Duration kKillRoundInterval = std::chrono::milliseconds(5);

// Finding and killing a process with everything that it started. A process group is not enough
// (setsid leaves it), nor is PDEATHSIG (grandchildren have none). As subreapers, guardian and agent
// become the parent of every orphan below them, so a walk over /proc/PID/task/TID/children finds
// all; what is forked during the walk is found in the next round. Nothing here allocates but
// opendir, so that the guardian can use it.
// Source: proc(5), prctl(2) PR_SET_CHILD_SUBREAPER.

struct ProcessStat {
  char state = '?';  // R, S, D, T, t, Z ... of /proc/PID/stat
  pid_t parent = 0;
  pid_t group = 0;
};
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

// True if the process was started with this `NAME=value` in its environment.
bool HasEnvironment(pid_t pid, std::string_view assignment);

struct FoundProcess {
  pid_t pid = 0;
  pid_t parent = 0;  // under which it was found
};

class ProcessList {
 public:
  void Clear() { size_ = 0; }
  int size() const { return size_; }
  const FoundProcess& operator[](int index) const { return found_[index]; }
  // False when kTreeProcessesMax is reached.
  bool Add(FoundProcess process);
  bool AddChildrenOf(pid_t parent);
  // Everything below the entries from `first` on.
  void AddDescendants(int first);

 private:
  std::array<FoundProcess, kTreeProcessesMax> found_;
  int size_ = 0;
};

// Signals the process if it is still the child of the parent under which it was found: its number
// may have been given to a stranger since. True if it lives (a zombie does not).
bool SignalFound(const FoundProcess& process, int signal);

// Returns when a child changes its state, at the latest after `limit`. Requires: SIGCHLD is blocked
// in every thread.
void WaitForChild(Duration limit);

// SIGKILLs every descendant of the calling process and reaps its children until none is left, or
// kKillRoundsLimit has passed. True if none is left. Requires: the caller is a subreaper
// and SIGCHLD is blocked in every thread.
bool KillAllDescendants(ProcessList& scratch);

}  // namespace elastic::internal
