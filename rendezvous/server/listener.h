#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// A gRPC server that listens on one address.
struct Listener {
  std::unique_ptr<grpc::Server> server;
  std::string target;  // what a client dials: the address with its real port
};

// A TCP address given with port 0 gets a free port. `public_reading` adds the standard health check
// and reflection. Errors: INVALID_ARGUMENT for an address that can never be listened on;
// UNAVAILABLE when it cannot be now.
StatusOr<Listener> Listen(const std::string& address, const std::vector<grpc::Service*>& services,
                          bool public_reading);

}  // namespace elastic::internal
