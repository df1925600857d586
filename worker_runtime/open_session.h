#pragma once

#include <memory>

#include "rendezvous/base/status.h"
#include "worker_runtime/session.h"

namespace elastic::internal {

// Reads ELASTIC_AGENT_SOCKET and ELASTIC_JOB_ID: a world of one without both, else the agent's
// worker. Errors: FAILED_PRECONDITION when only one is set; those of AgentSession::Open.
StatusOr<std::unique_ptr<Session>> OpenSession();

}  // namespace elastic::internal
