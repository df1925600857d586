#pragma once

#include <memory>

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
  bool done() const override { return done_; }

  Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                   Deadline deadline) override;
  Status Broadcast(void* data, size_t bytes, int root, Deadline deadline) override;
  Status AllGather(const void* in, void* out, size_t bytes, Deadline deadline) override;
  Status Barrier(Deadline deadline) override;

  RecoveryTimes recovery_times() const override { return {}; }

 private:
  // The items become the committed copy.
  Status CommitItems();

  std::unique_ptr<StateMemory> memory_;
  std::unique_ptr<StateItems> items_;
  uint64_t step_ = 0;
  bool joined_ = false;
  bool done_ = false;
};

}  // namespace elastic::internal
