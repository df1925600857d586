#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include "launcher/agent/traces.h"
#include "launcher/base/process_tree.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/unique_fd.h"

// What the tests of guardian and agent share: real processes, watched without sleeping.
namespace elastic::internal {

inline constexpr Duration kPatience =
    std::chrono::seconds(10);  // far more than anything here takes

// A folder of the test's own, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/elastic-agent-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Traces TracesIn(const std::string& folder) {
  AgentBootstrap bootstrap;
  bootstrap.folder = folder;
  bootstrap.server = "unix:" + folder + "/rendezvous.sock";
  const auto traces = TracesOf(bootstrap);
  REQUIRE(traces.ok());
  return *traces;
}

inline void BlockChildSignal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

inline std::string ReadLine(int fd) {
  std::string line;
  const Instant limit = Now() + kPatience;
  for (char character = 0; Now() < limit;) {
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, 100) == 1) {
      if (read(fd, &character, 1) != 1 || character == '\n') {
        break;
      }
      line += character;
    }
  }
  return line;
}

inline bool Lives(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  return stat && stat->state != 'Z';
}

inline bool AllGoneWithin(Duration limit, const std::set<pid_t>& pids) {
  const Instant end = Now() + limit;
  for (pid_t pid : pids) {
    const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    pollfd ended{handle.get(), POLLIN, 0};
    const Duration left = std::max(end - Now(), Duration(0));
    if (handle.valid() && poll(&ended, 1, static_cast<int>(ToMilliseconds(left)) + 1) != 1) {
      return false;
    }
  }
  return true;
}

inline size_t OpenDescriptors(const std::string& process) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + process + "/fd")) {
    ++count;
  }
  return count;
}

}  // namespace elastic::internal
