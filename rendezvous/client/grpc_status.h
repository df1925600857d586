#pragma once

#include <grpcpp/support/status.h>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// Our codes have gRPC's numbers; codes that we never make ourselves become INTERNAL, and UNKNOWN,
// which gRPC gives for a peer that broke off, UNAVAILABLE.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

// gRPC writes to stderr what it also returns; it goes to our log at debug level instead.
void RouteGrpcLog();

}  // namespace elastic::internal
