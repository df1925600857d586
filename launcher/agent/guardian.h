#pragma once

#include <sys/types.h>

#include <string_view>

#include "launcher/agent/traces.h"
#include "proto/local/control_page.h"

namespace elastic::internal {

struct GuardianOptions {
  int socket = -1;       // to the agent
  int bootstrap_fd = 0;  // the agent's standard input: says whether the launcher lives
  pid_t agent = 0;       // this process's parent
  local::GuardianPage* page = nullptr;  // shared with the agent
  std::string_view job_id;
  Traces traces;
};

// The guardian's life: spawns workers for the agent and makes sure that none of them outlives it.
// A process of its own because a stopped agent kills nobody, and PDEATHSIG misses grandchildren;
// one thread and libc only, so that it has nothing that could fail. It kills every worker with all
// descendants when the agent ends, when the agent closes the socket, and when kill_at_ns of the
// page has passed (P23). Never returns.
[[noreturn]] void RunGuardian(const GuardianOptions& options);

}  // namespace elastic::internal
