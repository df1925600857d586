#pragma once

#include <memory>
#include <string>

#include "worker_runtime/link/agent_socket.h"
#include "worker_runtime/link/member.h"
#include "worker_runtime/link/runtime_thread.h"
#include "worker_runtime/link/worker_page.h"
#include "worker_runtime/session.h"

namespace elastic::internal {

// A worker of a job: owns the link to the agent, the data plane's context, the member and the
// runtime's thread, in the order in which they need each other.
class AgentSession final : public Session {
 public:
  struct Options {
    std::string socket_path;
    std::string job_id;
  };
  // Errors: UNAVAILABLE when the agent cannot be reached or does not answer; FAILED_PRECONDITION
  // when it refuses; INVALID_ARGUMENT for an environment or a page that cannot be right.
  static StatusOr<std::unique_ptr<Session>> Open(const Options& options);

  std::string incarnation() const override { return ToString(self_); }

  Status CreateState(size_t bytes) override {
    return member_->CreateState(greeting_.state.get(), bytes);
  }
  void* current() const override { return member_->current().data(); }
  void* next() const override { return member_->next().data(); }
  uint64_t committed_step() const override { return member_->committed_step(); }
  Status RegisterItem(StateItem item) override {
    return member_->RegisterItem(greeting_.state.get(), std::move(item));
  }
  StateItems* items() override { return member_->items(); }

  Status Join(Deadline deadline) override { return member_->Join(deadline); }
  std::optional<Membership> membership() const override { return member_->membership(); }
  Status Commit(uint64_t step, Deadline deadline) override {
    return member_->Commit(step, deadline);
  }
  Status Finish(Deadline deadline) override { return member_->Finish(deadline); }
  void RequestStop() override { member_->RequestStop(); }
  bool stop_requested() const override { return member_->stop_requested(); }
  bool done() const override { return member_->done(); }

  StatusOr<int> CreateCommunicator(Deadline deadline) override {
    return member_->CreateCommunicator(deadline);
  }
  Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                   const Call& call) override;
  Status ReduceScatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                       const Call& call) override;
  Status Broadcast(void* data, size_t bytes, int root, const Call& call) override;
  Status AllGather(const void* in, void* out, std::span<const size_t> bytes_of,
                   const Call& call) override;
  Status Barrier(const Call& call) override;

  RecoveryTimes recovery_times() const override;

  Standing standing() const override { return member_->standing(); }
  std::vector<MemberView> members() const override { return member_->members(); }
  StatusOr<LoopEvent> Poll() override { return member_->Poll(); }
  StatusOr<int> EventFd() override { return member_->EventFd(); }
  Status Put(const std::string& key, std::string value, Deadline deadline) override {
    return member_->Put(key, std::move(value), deadline);
  }
  StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
    return member_->Get(key, deadline);
  }

 private:
  explicit AgentSession(AgentSocket::Greeting greeting) : greeting_(std::move(greeting)) {}

  Status SetUp(const std::string& job_id);

  AgentSocket::Greeting greeting_;
  WorkerIncarnation self_;
  std::unique_ptr<AgentSocket> socket_;
  std::unique_ptr<WorkerPage> page_;
  UniqueFd wake_;
  std::unique_ptr<Member> member_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<RuntimeThread> thread_;
};

}  // namespace elastic::internal
