#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker_runtime/link/loop_bell.h"
#include "worker_runtime/session.h"
#include "worker_runtime/state_memory.h"

namespace elastic::internal {

// A world of one: a program started without a launcher trains alone, with the same calls. Nothing
// can be lost, so there is no thread, no page and no generation but the first.
class SoloSession final : public Session {
 public:
  std::string incarnation() const override { return "0.0"; }

  Status CreateState(size_t bytes) override;
  void* current() const override;
  void* next() const override;
  uint64_t committed_step() const override { return step_; }
  Status RegisterItem(StateItem item) override;
  StateItems* items() override { return items_.get(); }

  Status Join(Deadline deadline) override;
  std::optional<Membership> membership() const override;
  Status Commit(uint64_t step, Deadline deadline) override;
  Status Finish(Deadline deadline) override;
  void RequestStop() override { stop_wanted_ = true; }
  bool stop_requested() const override { return stop_requested_; }
  bool done() const override { return done_; }

  StatusOr<int> CreateCommunicator(Deadline deadline) override;
  Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                   const Call& call) override;
  Status ReduceScatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                       const Call& call) override;
  Status Broadcast(void* data, size_t bytes, int root, const Call& call) override;
  Status AllGather(const void* in, void* out, std::span<const size_t> bytes_of,
                   const Call& call) override;
  Status Barrier(const Call& call) override;

  RecoveryTimes recovery_times() const override { return {}; }

  Standing standing() const override;
  std::vector<MemberView> members() const override;
  StatusOr<LoopEvent> Poll() override;
  StatusOr<int> EventFd() override;
  Status Put(const std::string& key, std::string value, Deadline deadline) override;
  StatusOr<std::string> Get(const std::string& key, Deadline deadline) override;

 private:
  // The items become the committed copy.
  Status CommitItems();
  void RingLoop();

  std::unique_ptr<StateMemory> memory_;
  std::unique_ptr<StateItems> items_;
  uint64_t step_ = 0;
  int created_ = 0;  // communicators
  bool joined_ = false;
  bool done_ = false;
  LoopBell loop_bell_;
  std::map<std::string, std::string> store_;
  std::atomic<bool> stop_wanted_ = false;
  bool stop_requested_ = false;
};

}  // namespace elastic::internal
