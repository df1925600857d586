#include "rendezvous/server/status_service.h"

#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/convert.h"

namespace elastic::internal {

StatusService::StatusService(Driver& driver) : driver_(driver) {}

grpc::ServerUnaryReactor* StatusService::GetStatus(grpc::CallbackServerContext* context,
                                                   const v1::GetStatusRequest* /*request*/,
                                                   v1::GetStatusResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool asked = driver_.RequestView([reactor, response](const JobView& view) {
    *response->mutable_job() = ToProto(view, Now());
    reactor->Finish(grpc::Status::OK);
  });
  if (!asked) {
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the server is stopping or its queue is full"});
  }
  return reactor;
}

}  // namespace elastic::internal
