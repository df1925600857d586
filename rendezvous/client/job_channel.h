#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace elastic::internal {

// A connection of its own to a rendezvous server, for one attempt: the delays between attempts are
// the caller's, not those of a shared connection that remembers its failures. One without a living
// peer is noticed within seconds.
std::shared_ptr<grpc::Channel> MakeJobChannel(const std::string& target);

}  // namespace elastic::internal
