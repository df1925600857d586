#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "launcher/base/bootstrap.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// A started elastic-agent process on this machine, in a process group of its own so that a
// terminal's Ctrl-C and Ctrl-Z reach the launcher alone.
struct LocalAgent {
  pid_t pid = 0;
  // Readable when the process has ended. Invalid once it has and cannot be reaped yet: SIGCHLD
  // tells.
  UniqueFd pidfd;
  UniqueFd input;         // write end of its standard input; closing it ends the agent (P21)
  std::string unwritten;  // rest of the bootstrap line that the pipe could not take yet
  UniqueFd output;        // read ends of its standard output and error
  UniqueFd errors;
};

// The elastic-agent that belongs to this program: it stands in the same folder.
// Errors: NOT_FOUND names where it was looked for.
StatusOr<std::string> FindAgentProgram();

// Errors: of pipe, posix_spawn or pidfd_open, naming the program.
StatusOr<LocalAgent> StartLocalAgent(const std::string& program, const AgentBootstrap& bootstrap);

// Writes more of the bootstrap line if the pipe takes it. The agent's death is not an error here:
// its pidfd tells.
void ContinueBootstrap(LocalAgent& agent);

// Reaps the process if it has ended. Never waits: a process that a debugger traces stays with it
// after its end, and nobody else can reap it before the debugger lets go.
std::optional<ExitStatus> ReapAgent(LocalAgent& agent);

}  // namespace elastic::internal
