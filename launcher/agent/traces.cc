#include "launcher/agent/traces.h"

#include <poll.h>
#include <unistd.h>

#include <cstring>

namespace elastic::internal {

StatusOr<Traces> TracesOf(const AgentBootstrap& bootstrap) {
  Traces traces;
  // The pid, not the host: loopback hosts share a folder, names can be long and hold any character.
  const std::string socket = StrCat(bootstrap.folder, "/agent-", getpid(), ".sock");
  if (socket.size() >= sizeof traces.worker_socket || bootstrap.folder.size() >= 4096) {
    return InvalidArgumentError(
        StrCat("the path '", socket, "' has ", socket.size(), " bytes, a Unix socket's may have ",
               sizeof traces.worker_socket - 1, ": set TMPDIR to a shorter folder"));
  }
  std::memcpy(traces.worker_socket, socket.data(), socket.size());
  std::memcpy(traces.folder, bootstrap.folder.data(), bootstrap.folder.size());
  const std::string prefix = "unix:";
  if (bootstrap.server.rfind(prefix + bootstrap.folder + "/", 0) == 0 &&
      bootstrap.server.size() - prefix.size() < sizeof traces.server_socket) {
    std::memcpy(traces.server_socket, bootstrap.server.data() + prefix.size(),
                bootstrap.server.size() - prefix.size());
  }
  return traces;
}

void RemoveTraces(const Traces& traces, bool launcher_gone) {
  unlink(traces.worker_socket);
  if (launcher_gone) {
    if (traces.server_socket[0] != '\0') {
      unlink(traces.server_socket);
    }
    rmdir(traces.folder);  // fails while another agent's socket is in it: that one will do it
  }
}

bool LauncherIsGone(int bootstrap_fd) {
  pollfd input{bootstrap_fd, 0, 0};
  return poll(&input, 1, 0) == 1 && (input.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace elastic::internal
