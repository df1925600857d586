#include "rendezvous/client/status_client.h"

#include <grpcpp/grpcpp.h>

#include "elastic/v1/status.grpc.pb.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_deadline.h"
#include "rendezvous/client/grpc_status.h"

namespace elastic::internal {

StatusOr<JobView> GetStatus(const std::string& address, Duration time_limit) {
  RouteGrpcLog();
  grpc::ChannelArguments arguments;
  // A job is near; a proxy of the environment is for the outside.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kControlMessageBytesMax));
  const auto stub = v1::Status::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(time_limit));
  v1::GetStatusResponse response;
  const grpc::Status status = stub->GetStatus(&context, {}, &response);
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return FromProto(response.job(), Now());
    case grpc::StatusCode::UNIMPLEMENTED:
      return InvalidArgumentError("what listens at " + address +
                                  " is no status service of elastic-run");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return UnavailableError("no answer from " + address + " within " +
                              FormatDuration(time_limit));
    case grpc::StatusCode::UNAVAILABLE:
      return UnavailableError("no job answers at " + address + ": " + status.error_message());
    default: return FromGrpc(status);
  }
}

}  // namespace elastic::internal
