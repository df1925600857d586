#include "worker_runtime/open_session.h"

#include <cstdlib>
#include <string>

#include "rendezvous/base/log.h"
#include "worker_runtime/link/agent_session.h"
#include "worker_runtime/solo_session.h"

namespace elastic::internal {

StatusOr<std::unique_ptr<Session>> OpenSession() {
  const char* socket_path = std::getenv("ELASTIC_AGENT_SOCKET");
  const char* job_id = std::getenv("ELASTIC_JOB_ID");
  if (socket_path == nullptr && job_id == nullptr) {
    return std::make_unique<SoloSession>();
  }
  if (socket_path == nullptr || job_id == nullptr) {
    const bool no_socket = socket_path == nullptr;
    return FailedPreconditionError(
        StrCat(no_socket ? "ELASTIC_JOB_ID" : "ELASTIC_AGENT_SOCKET", " is set but ",
               no_socket ? "ELASTIC_AGENT_SOCKET" : "ELASTIC_JOB_ID",
               " is not: start the program with elastic-run and hand both on, or unset both to "
               "train alone"));
  }
  return AgentSession::Open({.socket_path = socket_path, .job_id = job_id});
}

}  // namespace elastic::internal
