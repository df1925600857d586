#pragma once

#include <sys/resource.h>

#include "launcher/agent/guardian_worker.h"

namespace elastic::internal {

// What a child reports through the pipe that a successful exec closes.
struct ExecFailure {
  SpawnStep step;
  int32_t error_number;
};

// Makes the worker's memory and pipes and forks it; `text` is the descriptor of the command.
// `files` is the descriptor limit that the program gets. On failure `failed_step` and
// `error_number` are set. Returns at once: whether exec succeeds is read from exec_result later,
// since a slow file system must not hold up the guardian.
void StartWorker(GuardianWorker& worker, const GuardianCommand& command, UniqueFd text,
                 const rlimit& files);

}  // namespace elastic::internal
