#include "rendezvous/server/agent_service.h"

#include <memory>

#include "rendezvous/server/agent_stream.h"

namespace elastic::internal {

AgentService::AgentService(JobSlot& jobs) : jobs_(jobs) {}

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* AgentService::Connect(
    grpc::CallbackServerContext* /*context*/) {
  auto stream = std::make_shared<AgentStream>(jobs_, open_streams_);
  stream->Begin();
  return stream.get();
}

}  // namespace elastic::internal
