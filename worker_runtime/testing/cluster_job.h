#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker_runtime/elastic_testing.h"

namespace elastic::testing {

// Owns a file descriptor. This library is linked into users' tests and uses nothing of ours.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// One run of elastic-run, and the thread that reads what it and its ranks say.
class Cluster::Job {
 public:
  Job() = default;
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // `command`: elastic-run with all its arguments. `function`: of kFunctionVariable.
  Status Start(std::vector<std::string> command, const std::string& function);

  Status WaitFor(std::string_view text, int times, Limit limit);
  Status Wait(Limit limit);
  Status Signal(int slot, int number);

  std::vector<Message> messages() const;
  std::string output() const;
  int exit_code() const;

 private:
  Status MakePipes();
  void Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  bool WaitUntilEnded(Limit limit);
  void Read();
  void Drain();
  void Take(const std::string& line);
  std::string Tail() const;

  std::string folder_;
  Descriptor said_;    // the pipe that ranks write to
  Descriptor output_;  // of elastic-run
  Descriptor output_writer_;
  Descriptor wake_;
  pid_t pid_ = 0;
  Descriptor process_;
  std::string unfinished_;  // of the reader: a line of which the end has not come

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Message> messages_;
  std::map<int, Descriptor> processes_;  // the newest of each slot
  std::string text_;
  std::optional<int> exit_code_;
  bool stopping_ = false;

  std::thread reader_;
};

}  // namespace elastic::testing
