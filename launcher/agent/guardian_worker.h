#pragma once

#include <sys/types.h>

#include "launcher/agent/guardian_protocol.h"
#include "rendezvous/base/time.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// One incarnation in the guardian's table.
struct GuardianWorker {
  bool used = false;
  local::WireIncarnation incarnation{};
  pid_t pid = 0;  // 0: never forked

  // Given to the agent with kSpawned, which keeps what must outlive the worker. The last one to
  // close a state frees its memory, half a second for each GiB, and must not be the guardian: it
  // would miss its beats, and the agent would take it for hung.
  UniqueFd page;
  UniqueFd state;
  UniqueFd bell;
  UniqueFd output;
  UniqueFd errors;

  // Closed by a successful exec, or brings {step, errno}.
  UniqueFd exec_result;
  SpawnStep failed_step = SpawnStep::kNone;
  int32_t error_number = 0;

  bool reaped = false;
  int32_t wait_status = 0;
  // Signalled softly: what it started may outlive it, until it is to be killed.
  bool asked_to_end = false;
  bool killing = false;  // until no process of it is left
  Instant kill_began{};
  bool gone = false;  // killing is over
  int32_t left_behind = 0;

  bool start_reported = false;  // kSpawned was sent

  bool starting() const { return exec_result.valid(); }
  bool failed() const { return failed_step != SpawnStep::kNone; }
};

}  // namespace elastic::internal
