#include "rendezvous/server/listener.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <sys/un.h>

#include <memory>
#include <utility>
#include <vector>

#include "elastic/health.pb.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/tcp_address.h"

namespace elastic::internal {

namespace {

constexpr char kUnixPrefix[] = "unix:";

// Reflection exactly where it is wanted. Linked in, gRPC's plugin adds itself to every server of
// the process before any option is asked, the agents' one too.
class ReflectionOption final : public grpc::ServerBuilderOption {
 public:
  explicit ReflectionOption(bool wanted) : wanted_(wanted) {}
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    auto own = std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>();
    std::erase_if(*plugins, [&](const auto& plugin) { return plugin->name() == own->name(); });
    if (wanted_) {
      plugins->push_back(std::move(own));
    }
  }

 private:
  const bool wanted_;
};

Status CheckAddress(const std::string& address) {
  if (address.starts_with(kUnixPrefix)) {
    const size_t bytes = address.size() - std::string(kUnixPrefix).size();
    const size_t bytes_max = sizeof(sockaddr_un{}.sun_path) - 1;
    if (bytes == 0 || bytes > bytes_max) {
      return InvalidArgumentError("the path in `" + address + "` has " + std::to_string(bytes) +
                                  " bytes; a Unix socket takes 1 to " + std::to_string(bytes_max) +
                                  " (a shorter TMPDIR helps)");
    }
    return OkStatus();
  }
  if (!HasTcpPort(address)) {
    return InvalidArgumentError("`" + address +
                                "` is no address: want HOST:PORT with a port from 0 to 65535, or "
                                "unix:PATH");
  }
  return OkStatus();
}

}  // namespace

StatusOr<Listener> Listen(const std::string& address, const std::vector<grpc::Service*>& services,
                          bool public_reading) {
  RETURN_IF_ERROR(CheckAddress(address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(kControlMessageBytesMax));
  // Two servers on one port would share its connections, and neither would know.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.SetOption(std::make_unique<ReflectionOption>(public_reading));
  if (public_reading) {
    // Links the description of the health check, which gRPC serves without having it.
    grpc::health::v1::HealthCheckRequest::descriptor();
  } else {
    builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  }
  Listener listener{.server = builder.BuildAndStart(), .target = address};
  const bool is_unix = address.starts_with(kUnixPrefix);
  if (listener.server == nullptr || (port == 0 && !is_unix)) {
    return UnavailableError("cannot listen on " + address +
                            ": another process may have it, or it is no address of this host");
  }
  if (!is_unix) {
    listener.target = address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  }
  return listener;
}

}  // namespace elastic::internal
