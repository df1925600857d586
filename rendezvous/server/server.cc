#include "rendezvous/server/server.h"

#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/grpc_deadline.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/server/agent_service.h"
#include "rendezvous/server/driver.h"
#include "rendezvous/server/listener.h"
#include "rendezvous/server/status_service.h"

namespace elastic::internal {

namespace {

// How long calls in progress may take once their streams have been told to end.
constexpr std::chrono::milliseconds kShutdownWait{400};

}  // namespace

class RendezvousServer::Impl {
 public:
  Impl(JobSpec job, ServerIncarnation incarnation, std::optional<JournalRecord> restored,
       Journal& journal, Callbacks callbacks)
      : driver(job, incarnation, std::move(restored), journal,
               {.note = std::move(callbacks.note), .ended = std::move(callbacks.ended)}),
        agent_service(driver, job.job_id),
        status_service(driver) {}

  // The driver goes first: it closes the streams, and what is still read meets a closed queue.
  void Shutdown() {
    driver.Stop();
    for (Listener* listener : {&agents, &status}) {
      if (listener->server != nullptr) {
        listener->server->Shutdown(GrpcDeadline(kShutdownWait));
        listener->server.reset();
      }
    }
  }

  Driver driver;
  AgentService agent_service;
  StatusService status_service;
  Listener agents;
  Listener status;
};

StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(Options options,
                                                                    Journal& journal,
                                                                    Callbacks callbacks) {
  RouteGrpcLog();
  ASSIGN_OR_RETURN(const ServerIncarnation incarnation, journal.BeginIncarnation());
  ASSIGN_OR_RETURN(std::optional<JournalRecord> restored, journal.Newest());
  auto impl = std::make_unique<Impl>(std::move(options.job), incarnation, std::move(restored),
                                     journal, std::move(callbacks));
  ASSIGN_OR_RETURN(impl->agents, Listen(options.agent_address, impl->agent_service, false));
  StatusOr<Listener> status = Listen(options.status_address, impl->status_service, true);
  if (!status.ok()) {
    impl->Shutdown();
    return Status(status.status().code(), "--status-address: " + status.status().message());
  }
  impl->status = std::move(*status);
  impl->status.server->GetHealthCheckService()->SetServingStatus(v1::Status::service_full_name(),
                                                                 true);
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(impl)));
}

RendezvousServer::RendezvousServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RendezvousServer::~RendezvousServer() { Shutdown(); }

std::string RendezvousServer::agent_target() const { return impl_->agents.target; }
std::string RendezvousServer::status_address() const { return impl_->status.target; }

void RendezvousServer::Post(Event event) { impl_->driver.Post(std::move(event)); }
JobView RendezvousServer::View() { return impl_->driver.View(); }
void RendezvousServer::Shutdown() { impl_->Shutdown(); }

}  // namespace elastic::internal
