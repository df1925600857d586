#pragma once

#include <sys/un.h>

#include <string>

#include "launcher/base/bootstrap.h"

namespace elastic::internal {

// What an agent leaves in the file system, in fixed memory so that the guardian can remove it when
// the agent cannot any more.
struct Traces {
  char worker_socket[sizeof(sockaddr_un::sun_path)] = "";
  char server_socket[sizeof(sockaddr_un::sun_path)] = "";  // empty: not a Unix socket in `folder`
  char folder[4096] = "";
};

// Errors: INVALID_ARGUMENT when the folder's name is too long for a socket in it.
StatusOr<Traces> TracesOf(const AgentBootstrap& bootstrap);

// Removes the worker socket, and when the launcher is gone also what it left in the folder.
void RemoveTraces(const Traces& traces, bool launcher_gone);

// True once the other end of the bootstrap input is closed (P21).
bool LauncherIsGone(int bootstrap_fd);

}  // namespace elastic::internal
