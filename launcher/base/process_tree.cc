#include "launcher/base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

namespace {

// Calls `add(pid)` for each number in the file; false as soon as `add` is.
template <class Add>
bool ForEachNumber(const char* path, Add add) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return true;
  }
  char buffer[4096];
  pid_t number = 0;
  for (;;) {
    const ssize_t bytes = read(file.get(), buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) {
      continue;
    }
    for (ssize_t i = 0; i < bytes; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        number = number * 10 + (buffer[i] - '0');
      } else if (number != 0) {
        if (!add(number)) {
          return false;
        }
        number = 0;
      }
    }
    if (bytes <= 0) {
      return true;  // the kernel ends each number with a space
    }
  }
}

}  // namespace

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char buffer[512];
  const ssize_t bytes = file.valid() ? read(file.get(), buffer, sizeof buffer - 1) : -1;
  if (bytes <= 0) {
    return std::nullopt;
  }
  buffer[bytes] = '\0';
  // The name in parentheses may itself contain parentheses and spaces.
  const char* after_name = std::strrchr(buffer, ')');
  ProcessStat stat;
  if (after_name == nullptr ||
      std::sscanf(after_name + 1, " %c %d %d", &stat.state, &stat.parent, &stat.group) != 3) {
    return std::nullopt;
  }
  return stat;
}

bool HasEnvironment(pid_t pid, std::string_view assignment) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return false;
  }
  char buffer[4096];
  size_t matched = 0;  // characters of this variable that match
  bool matching = true;
  for (size_t total = 0; total < kEnvironBytesMax;) {
    const ssize_t bytes = read(file.get(), buffer, sizeof buffer);
    if (bytes <= 0) {
      return false;
    }
    for (ssize_t i = 0; i < bytes; ++i) {
      if (buffer[i] == '\0') {
        if (matching && matched == assignment.size()) {
          return true;
        }
        matched = 0;
        matching = true;
      } else if (matching) {
        matching = matched < assignment.size() && assignment[matched] == buffer[i];
        ++matched;
      }
    }
    total += static_cast<size_t>(bytes);
  }
  return false;
}

bool ProcessList::Add(FoundProcess process) {
  if (size_ == kTreeProcessesMax) {
    return false;
  }
  found_[size_++] = process;
  return true;
}

bool ProcessList::AddChildrenOf(pid_t parent) {
  char path[80];
  std::snprintf(path, sizeof path, "/proc/%d/task", parent);
  DIR* tasks = opendir(path);
  if (tasks == nullptr) {
    return true;
  }
  bool room = true;
  while (const dirent* task = room ? readdir(tasks) : nullptr) {
    const int thread = std::atoi(task->d_name);
    if (thread == 0) {
      continue;
    }
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, thread);
    room = ForEachNumber(path, [&](pid_t pid) { return Add({pid, parent}); });
  }
  closedir(tasks);
  return room;
}

void ProcessList::AddDescendants(int first) {
  for (int i = first; i < size_; ++i) {
    if (!AddChildrenOf(found_[i].pid)) {
      return;
    }
  }
}

bool SignalFound(const FoundProcess& process, int signal) {
  const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle.valid() && errno == ESRCH) {
    return false;
  }
  const std::optional<ProcessStat> stat = ReadProcessStat(process.pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') {
    return false;
  }
  if (stat->parent != process.parent) {
    return true;  // found again under its new parent in the next round
  }
  if (handle.valid()) {
    syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
  } else {
    kill(process.pid, signal);  // no descriptor to be had: better a tiny race than a survivor
  }
  return true;
}

void WaitForChild(Duration limit) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec timeout{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  sigtimedwait(&child, nullptr, &timeout);
}

bool KillAllDescendants(ProcessList& scratch) {
  const pid_t self = getpid();
  const Instant limit = Now() + kKillRoundsLimit;
  for (;;) {
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0 || (reaped < 0 && errno == EINTR));
    if (reaped < 0) {
      return true;  // ECHILD: as a subreaper's only way to have descendants is through children
    }
    if (Now() > limit) {
      return false;
    }
    scratch.Clear();
    scratch.AddChildrenOf(self);
    scratch.AddDescendants(0);
    for (int i = 0; i < scratch.size(); ++i) {
      SignalFound(scratch[i], SIGKILL);
    }
    WaitForChild(kKillRoundInterval);
  }
}

}  // namespace elastic::internal
