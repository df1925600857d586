#include "rendezvous/client/grpc_status.h"

#include <grpc/support/log.h>

#include "rendezvous/base/log.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  return {static_cast<grpc::StatusCode>(status.code()), Utf8(status.message())};
}

Status FromGrpc(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return OkStatus();
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return {static_cast<StatusCode>(status.error_code()), status.error_message()};
    case grpc::StatusCode::UNKNOWN: return UnavailableError(status.error_message());
    default: return InternalError(status.error_message());
  }
}

void RouteGrpcLog() {
  gpr_set_log_function(
      [](gpr_log_func_args* args) { LogDebug("grpc: ", args->message, " (", args->file, ")"); });
}

}  // namespace elastic::internal
