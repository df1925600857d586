#include "rendezvous/server/server.h"

#include <grpcpp/health_check_service_interface.h>

#include <utility>
#include <vector>

#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/grpc_deadline.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/server/agent_service.h"
#include "rendezvous/server/job_slot.h"
#include "rendezvous/server/jobs_service.h"
#include "rendezvous/server/listener.h"
#include "rendezvous/server/status_service.h"

namespace elastic::internal {

namespace {

// How long calls in progress may take once their streams have been told to end.
constexpr std::chrono::milliseconds kShutdownWait{400};

}  // namespace

class RendezvousServer::Impl {
 public:
  // `submissions`: launchers may hand in jobs on the agents' listener.
  Status Listen(const std::string& agent_address, const std::string& status_address,
                bool submissions) {
    std::vector<grpc::Service*> services{&agent_service};
    if (submissions) {
      services.push_back(&jobs_service);
    }
    // First, since a launcher is told of it.
    StatusOr<Listener> reading = internal::Listen(status_address, {&status_service}, true);
    if (!reading.ok()) {
      return {reading.status().code(), "--status-address: " + reading.status().message()};
    }
    status = std::move(*reading);
    jobs_service.set_status_address(status.target);
    ASSIGN_OR_RETURN(agents, internal::Listen(agent_address, services, false));
    status.server->GetHealthCheckService()->SetServingStatus(v1::Status::service_full_name(), true);
    return OkStatus();
  }

  // The driver goes first: it closes the streams, and what is still read meets a closed queue.
  void Shutdown() {
    jobs.Stop();
    for (Listener* listener : {&agents, &status}) {
      if (listener->server != nullptr) {
        listener->server->Shutdown(GrpcDeadline(kShutdownWait));
        listener->server.reset();
      }
    }
  }

  JobSlot jobs;
  AgentService agent_service{jobs};
  JobsService jobs_service{jobs};
  StatusService status_service{jobs};
  Listener agents;
  Listener status;
};

StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(Options options,
                                                                    Journal& journal,
                                                                    Callbacks callbacks) {
  RouteGrpcLog();
  ASSIGN_OR_RETURN(const ServerIncarnation incarnation, journal.BeginIncarnation());
  ASSIGN_OR_RETURN(std::optional<JournalRecord> restored, journal.Newest());
  auto impl = std::make_unique<Impl>();
  impl->jobs.Put(std::make_shared<ServedJob>(
      std::move(options.job), incarnation, std::move(restored), journal,
      Driver::Callbacks{.note = std::move(callbacks.note), .ended = std::move(callbacks.ended)}));
  return Begin(std::move(impl), options.agent_address, options.status_address, false);
}

StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::StartStanding(
    const std::string& agent_address, const std::string& status_address) {
  RouteGrpcLog();
  return Begin(std::make_unique<Impl>(), agent_address, status_address, true);
}

StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Begin(
    std::unique_ptr<Impl> impl, const std::string& agent_address, const std::string& status_address,
    bool submissions) {
  if (const Status status = impl->Listen(agent_address, status_address, submissions);
      !status.ok()) {
    impl->Shutdown();
    return status;
  }
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(impl)));
}

RendezvousServer::RendezvousServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RendezvousServer::~RendezvousServer() { Shutdown(); }

std::string RendezvousServer::agent_target() const { return impl_->agents.target; }
std::string RendezvousServer::status_address() const { return impl_->status.target; }

void RendezvousServer::Post(Event event) {
  if (const std::shared_ptr<ServedJob> job = impl_->jobs.Get()) {
    job->driver().Post(std::move(event));
  }
}
JobView RendezvousServer::View() {
  const std::shared_ptr<ServedJob> job = impl_->jobs.Get();
  return job == nullptr ? JobView{} : job->driver().View();
}
void RendezvousServer::Shutdown() { impl_->Shutdown(); }

}  // namespace elastic::internal
