#include "rendezvous/server/agent_service.h"

#include <memory>
#include <utility>

#include "rendezvous/server/agent_stream.h"

namespace elastic::internal {

AgentService::AgentService(Driver& driver, std::string job_id)
    : driver_(driver), job_id_(std::move(job_id)) {}

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* AgentService::Connect(
    grpc::CallbackServerContext* /*context*/) {
  auto stream = std::make_shared<AgentStream>(driver_, job_id_, open_streams_);
  stream->Begin();
  return stream.get();
}

}  // namespace elastic::internal
