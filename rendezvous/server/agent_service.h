#pragma once

#include <atomic>
#include <string>

#include "elastic/v1/rendezvous.grpc.pb.h"
#include "rendezvous/server/driver.h"

namespace elastic::internal {

// The agents' gRPC service. Who may connect is decided by where it listens: a Unix socket in a
// folder of mode 0700 lets in this user only.
class AgentService final : public v1::Agents::CallbackService {
 public:
  // `driver` must outlive the service.
  AgentService(Driver& driver, std::string job_id);
  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  Driver& driver_;
  const std::string job_id_;
  std::atomic<int> open_streams_{0};
};

}  // namespace elastic::internal
