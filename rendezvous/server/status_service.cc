#include "rendezvous/server/status_service.h"

#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/convert.h"

namespace elastic::internal {

StatusService::StatusService(JobSlot& jobs) : jobs_(jobs) {}

grpc::ServerUnaryReactor* StatusService::GetStatus(grpc::CallbackServerContext* context,
                                                   const v1::GetStatusRequest* /*request*/,
                                                   v1::GetStatusResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const std::shared_ptr<ServedJob> job = jobs_.Get();
  if (job == nullptr) {
    reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION,
                     "no job has been submitted to this server yet (elastic-run --rendezvous)"});
    return reactor;
  }
  const bool asked = job->driver().RequestView([reactor, response](const JobView& view) {
    *response->mutable_job() = ToProto(view, Now());
    reactor->Finish(grpc::Status::OK);
  });
  if (!asked) {
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the server is stopping or its queue is full"});
  }
  return reactor;
}

}  // namespace elastic::internal
