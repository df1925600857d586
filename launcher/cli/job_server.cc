#include "launcher/cli/job_server.h"

#include <utility>

#include "rendezvous/client/remote_job.h"
#include "rendezvous/server/server.h"
#include "rendezvous/store/journal.h"

namespace elastic::internal {

namespace {

class InProcess final : public JobServer {
 public:
  static StatusOr<std::unique_ptr<JobServer>> Start(const RunOptions& options, const JobSpec& job,
                                                    const std::string& folder,
                                                    Callbacks callbacks) {
    std::unique_ptr<Journal> journal = MakeMemoryJournal();
    ASSIGN_OR_RETURN(auto server, RendezvousServer::Start(
                                      {.job = job,
                                       .agent_address = "unix:" + folder + "/rendezvous.sock",
                                       .status_address = options.status_address},
                                      *journal,
                                      {.note = std::move(callbacks.note),
                                       .ended = [ended = std::move(callbacks.ended)](
                                                    int exit_code, const std::string& reason) {
                                         ended({exit_code, reason});
                                       }}));
    return std::unique_ptr<JobServer>(new InProcess(std::move(journal), std::move(server)));
  }

  std::string agent_target() const override { return server_->agent_target(); }
  std::string status_address() const override { return server_->status_address(); }
  void Post(Event event) override { server_->Post(std::move(event)); }
  Held Newest() override { return server_->View().newest; }
  void Shutdown() override { server_->Shutdown(); }

 private:
  InProcess(std::unique_ptr<Journal> journal, std::unique_ptr<RendezvousServer> server)
      : journal_(std::move(journal)), server_(std::move(server)) {}

  const std::unique_ptr<Journal> journal_;
  const std::unique_ptr<RendezvousServer> server_;
};

class Standing final : public JobServer {
 public:
  static StatusOr<std::unique_ptr<JobServer>> Start(const RunOptions& options, const JobSpec& job,
                                                    Callbacks callbacks) {
    ASSIGN_OR_RETURN(auto remote,
                     RemoteJob::Submit(
                         {.server = options.rendezvous, .job = job},
                         {.note = std::move(callbacks.note),
                          .ended = [ended = std::move(callbacks.ended)](const RemoteJob::End& end) {
                            ended({end.exit_code, end.reason, end.workers_run});
                          }}));
    return std::unique_ptr<JobServer>(new Standing(options.rendezvous, std::move(remote)));
  }

  std::string agent_target() const override { return address_; }
  std::string status_address() const override { return job_->status_address(); }
  void Post(Event event) override { job_->Post(event); }
  Held Newest() override { return job_->Newest(); }
  void Shutdown() override { job_.reset(); }

 private:
  Standing(std::string address, std::unique_ptr<RemoteJob> job)
      : address_(std::move(address)), job_(std::move(job)) {}

  const std::string address_;
  std::unique_ptr<RemoteJob> job_;
};

}  // namespace

StatusOr<std::unique_ptr<JobServer>> JobServer::Start(const RunOptions& options, const JobSpec& job,
                                                      const std::string& folder,
                                                      Callbacks callbacks) {
  return options.rendezvous.empty() ? InProcess::Start(options, job, folder, std::move(callbacks))
                                    : Standing::Start(options, job, std::move(callbacks));
}

}  // namespace elastic::internal
