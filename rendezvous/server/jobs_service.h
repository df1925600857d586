#pragma once

#include <string>

#include "elastic/v1/jobs.grpc.pb.h"
#include "rendezvous/server/job_slot.h"

namespace elastic::internal {

// Where launchers hand in their jobs. Who may connect is decided as for agents.
class JobsService final : public v1::Jobs::CallbackService {
 public:
  explicit JobsService(JobSlot& jobs);  // must outlive the service
  // Told to launchers; call before the service is asked.
  void set_status_address(std::string address) { status_address_ = std::move(address); }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const v1::SubmitRequest* request,
                                   v1::SubmitResponse* response) override;
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request,
                                 v1::StopResponse* response) override;
  grpc::ServerUnaryReactor* ReportStartFailure(grpc::CallbackServerContext* context,
                                               const v1::StartFailure* request,
                                               v1::StartFailureResponse* response) override;

 private:
  StatusOr<std::shared_ptr<ServedJob>> Take(const v1::SubmitRequest& request);
  StatusOr<std::shared_ptr<ServedJob>> Find(const std::string& job_id) const;
  Status Tell(const std::string& job_id, Event event) const;

  JobSlot& jobs_;
  std::string status_address_;
};

}  // namespace elastic::internal
