#pragma once

#include <atomic>

#include "elastic/v1/rendezvous.grpc.pb.h"
#include "rendezvous/server/job_slot.h"

namespace elastic::internal {

// The agents' gRPC service. Who may connect is decided by where it listens: a Unix socket in a
// folder of mode 0700 lets in this user only.
class AgentService final : public v1::Agents::CallbackService {
 public:
  explicit AgentService(JobSlot& jobs);  // must outlive the service
  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  JobSlot& jobs_;
  std::atomic<int> open_streams_{0};
};

}  // namespace elastic::internal
