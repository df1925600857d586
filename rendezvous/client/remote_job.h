#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/base/log.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// A launcher's end of the job that it gives to a standing rendezvous server. Submits it, again
// whenever the server has lost it, and listens to what the server tells. Two threads of its own:
// one listens, one sends what the launcher wants.
class RemoteJob {
 public:
  struct Options {
    std::string server;  // HOST:PORT or unix:PATH
    JobSpec job;
  };
  struct End {
    int exit_code = 0;
    std::string reason;
    // The server cannot be reached: agents must stop the workers by themselves (P21).
    bool workers_run = false;
  };
  struct Callbacks {
    std::function<void(Severity, const std::string&)> note;
    std::function<void(const End&)> ended;  // once
  };
  // Blocks until the server has taken the job, kSubmitLimit at most.
  // Errors: UNAVAILABLE when no server answers; what the server says against the job.
  static StatusOr<std::unique_ptr<RemoteJob>> Submit(Options options, Callbacks callbacks);
  ~RemoteJob();

  std::string status_address() const;
  // Tells the server; StopRequested and AgentStartFailed. Never blocks. A stop while the server
  // cannot be reached ends the job here.
  void Post(const Event& event);
  // The newest committed state, from the server's status service; invalid if it does not answer.
  Held Newest() const;

 private:
  class Impl;
  explicit RemoteJob(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
