#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/guardian_protocol.h"
#include "launcher/agent/traces.h"
#include "proto/local/control_page.h"
#include "rendezvous/base/ids.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

struct SpawnRequest {
  WorkerIncarnation incarnation;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value, all that the program gets
};

// What the guardian gives out with a new worker.
struct WorkerDescriptors {
  UniqueFd page, state, bell, output, errors;
};

struct GuardianNews {
  GuardianEventKind kind = GuardianEventKind::kExited;
  WorkerIncarnation incarnation;
  int64_t pid = 0;
  WorkerDescriptors descriptors;  // kSpawned
  std::string message;            // kSpawnFailed: what to tell the user
  bool hopeless = false;          // kSpawnFailed: trying again cannot help
  ExitStatus status;              // kExited
  int left_behind = 0;            // kExited: processes that cannot be killed
};

// The agent's end of the link to its guardian. One thread.
class GuardianClient {
 public:
  // Forks the guardian. Requires: the process has one thread, and standard input is the bootstrap
  // input. `job_id` outlives the process's wish to spawn. Errors: of socketpair, mmap, fork.
  static StatusOr<std::unique_ptr<GuardianClient>> Fork(const std::string& job_id,
                                                        const Traces& traces);
  // Ends the guardian, and with it every worker: returns when no process of them is left, at the
  // latest after kKillRoundsLimit and a little.
  ~GuardianClient();
  GuardianClient(const GuardianClient&) = delete;
  GuardianClient& operator=(const GuardianClient&) = delete;

  // For a guardian that is silent: kills it instead of asking it to end. Its workers become
  // children of this process, which must kill them (P23).
  void GiveUp();

  // Errors: UNAVAILABLE when the guardian is gone or does not read (P23: then kill all and end).
  Status Spawn(const SpawnRequest& request);
  Status Kill(WorkerIncarnation incarnation, int signal);
  // nullopt: no news at present. Errors: UNAVAILABLE when the guardian is gone.
  StatusOr<std::optional<GuardianNews>> Receive();

  int socket() const { return socket_.get(); }  // readable: Receive
  int handle() const { return handle_.get(); }  // pidfd, readable: the guardian has ended
  pid_t pid() const { return pid_; }
  local::GuardianPage& page() { return *page_; }

 private:
  GuardianClient() = default;
  Status Send(const GuardianCommand& command, int descriptor);

  UniqueFd socket_;
  UniqueFd handle_;
  pid_t pid_ = 0;
  local::GuardianPage* page_ = nullptr;
};

}  // namespace elastic::internal
