#include "worker_runtime/link/agent_session.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <cerrno>
#include <cstring>

#include "rendezvous/base/log.h"

namespace elastic::internal {

StatusOr<std::unique_ptr<Session>> AgentSession::Open(const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<AgentSocket> socket, AgentSocket::Connect(options.socket_path));
  ASSIGN_OR_RETURN(AgentSocket::Greeting greeting, socket->Greet(options.job_id));
  std::unique_ptr<AgentSession> session(new AgentSession(std::move(greeting)));
  session->socket_ = std::move(socket);
  RETURN_IF_ERROR(session->SetUp(options.job_id));
  return StatusOr<std::unique_ptr<Session>>(std::move(session));
}

Status AgentSession::SetUp(const std::string& job_id) {
  const local::Welcome& welcome = greeting_.welcome;
  const size_t address_bytes = strnlen(welcome.listen_address, local::kAddressBytes);
  self_ = local::FromWire(welcome.incarnation);
  if (address_bytes == local::kAddressBytes || !self_.valid()) {
    return InvalidArgumentError("the agent's welcome has no valid incarnation or address");
  }
  ASSIGN_OR_RETURN(page_, WorkerPage::Map(greeting_.page.get()));
  // The runtime drains the bell without ever waiting for it.
  if (fcntl(greeting_.bell.get(), F_SETFL, O_NONBLOCK) != 0) {
    return ErrnoError(errno, "fcntl O_NONBLOCK of the bell");
  }
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) {
    return ErrnoError(errno, "eventfd");
  }
  member_ = std::make_unique<Member>(Member::Parts{.page = *page_,
                                                   .socket = *socket_,
                                                   .bell_fd = greeting_.bell.get(),
                                                   .wake_fd = wake_.get(),
                                                   .self = self_});
  ASSIGN_OR_RETURN(
      context_,
      Context::Create(
          {.listen_address = std::string(welcome.listen_address, address_bytes),
           .job_id = job_id,
           .job_nonce = welcome.job_nonce,
           .self = self_,
           .source = member_.get(),
           .give_back = [member = member_.get()](const GenerationId& generation, Channel channel) {
             return member->GiveBackMesh(generation, channel);
           }}));
  member_->SetDataEndpoint(context_->endpoint());
  thread_ = std::make_unique<RuntimeThread>(RuntimeThread::Parts{.member = *member_,
                                                                 .socket = *socket_,
                                                                 .page = *page_,
                                                                 .context = *context_,
                                                                 .bell_fd = greeting_.bell.get(),
                                                                 .wake_fd = wake_.get()});
  return thread_->Start();
}

Status AgentSession::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                               const Call& call) {
  return member_->Collective({Member::Reach::kWorld, call.communicator}, [&](Communicator& at) {
    return at.AllReduce(in, out, count, type, op, {}, call.deadline).status();
  });
}

Status AgentSession::ReduceScatter(const void* in, void* out, size_t count, DataType type,
                                   ReduceOp op, const Call& call) {
  return member_->Collective({Member::Reach::kWorld, call.communicator}, [&](Communicator& at) {
    return at.ReduceScatter(in, out, count, type, op, {}, call.deadline).status();
  });
}

Status AgentSession::Broadcast(void* data, size_t bytes, int root, const Call& call) {
  return member_->Collective({Member::Reach::kNotWorld, call.communicator}, [&](Communicator& at) {
    return at.Broadcast(data, bytes, root, {}, call.deadline).status();
  });
}

Status AgentSession::AllGather(const void* in, void* out, std::span<const size_t> bytes_of,
                               const Call& call) {
  return member_->Collective({Member::Reach::kWorld, call.communicator}, [&](Communicator& at) {
    return at.AllGatherV(in, out, bytes_of, {}, call.deadline).status();
  });
}

Status AgentSession::Barrier(const Call& call) {
  return member_->Collective({Member::Reach::kWorld, call.communicator}, [&](Communicator& at) {
    return at.Barrier({}, call.deadline).status();
  });
}

RecoveryTimes AgentSession::recovery_times() const {
  const local::RecoveryStamps& stamps = page_->stamps();
  return {.fenced = stamps.fenced.load(std::memory_order_relaxed),
          .bell_heard = stamps.bell_heard.load(std::memory_order_relaxed),
          .roster_came = stamps.roster_came.load(std::memory_order_relaxed),
          .edges_up = stamps.edges_up.load(std::memory_order_relaxed),
          .restored = stamps.restored.load(std::memory_order_relaxed)};
}

}  // namespace elastic::internal
