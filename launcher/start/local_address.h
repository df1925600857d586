#pragma once

#include <string>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// The numeric address on which workers of a local host listen for data: the name itself if it is a
// loopback address, 127.0.0.1 for `localhost`.
// Errors: INVALID_ARGUMENT for a malformed address and for those of the whole network;
// FAILED_PRECONDITION for any other host: this version starts agents on this machine only.
StatusOr<std::string> LocalDataAddress(const std::string& host);

}  // namespace elastic::internal
