#include "rendezvous/client/job_channel.h"

#include "rendezvous/base/limits.h"

namespace elastic::internal {

namespace {

// How long one attempt to connect may take, and how soon a connection without a peer is noticed.
constexpr int kConnectMilliseconds = 1000;
constexpr int kKeepaliveMilliseconds = 2000;

}  // namespace

std::shared_ptr<grpc::Channel> MakeJobChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kControlMessageBytesMax));
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace elastic::internal
