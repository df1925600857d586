#pragma once

#include "elastic/v1/status.grpc.pb.h"
#include "rendezvous/server/job_slot.h"

namespace elastic::internal {

// Read-only view of the job for anybody who can reach its listener.
class StatusService final : public v1::Status::CallbackService {
 public:
  explicit StatusService(JobSlot& jobs);  // must outlive the service
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;

 private:
  JobSlot& jobs_;
};

}  // namespace elastic::internal
