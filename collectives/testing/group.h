#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/transport/context.h"
#include "collectives/transport/mesh.h"

namespace elastic::internal {

// Ranks as threads of one process, for tests: over socket pairs, or over real TCP contexts.

// A bell and a word as the runtime has them.
class FakeInterrupt final : public Interrupt {
 public:
  FakeInterrupt();
  int event_fd() const override { return bell_.get(); }
  bool Over(GenerationNumber generation) const override {
    ++asked_;
    return generation.value <= over_;
  }
  uint64_t asked() const { return asked_; }  // how often Over was
  // Every generation up to `number` is over; the bell stays readable.
  void End(GenerationNumber number);
  void Ring();  // the bell alone, for no reason

 private:
  const UniqueFd bell_;
  std::atomic<uint32_t> over_ = 0;
  mutable std::atomic<uint64_t> asked_ = 0;
};

inline constexpr uint64_t kTestNonce = 0x1234;
GenerationId TestGeneration(uint32_t number);
WorkerIncarnation TestWorker(int rank);
// A roster of `endpoints.size()` members; its id has the right digest.
Roster TestRoster(uint32_t number, const std::vector<Endpoint>& endpoints);

std::vector<std::unique_ptr<Mesh>> SocketPairMeshes(int size, uint32_t generation = 1,
                                                    Channel channel = Channel::kMain);

// One context per rank on 127.0.0.1.
std::vector<std::unique_ptr<Context>> TcpContexts(int size);
Roster TestRoster(uint32_t number, const std::vector<std::unique_ptr<Context>>& contexts);
// Calls Progress of all contexts as they become ready, until `done` is true.
void PumpUntil(const std::vector<Context*>& contexts, const std::function<bool()>& done);
std::vector<std::unique_ptr<Mesh>> TcpMeshes(const std::vector<std::unique_ptr<Context>>& contexts,
                                             uint32_t generation = 1,
                                             Channel channel = Channel::kMain);

enum class Transport { kSocketPairs, kTcp };

// A thread whose body blocks: lets a test act once it really sleeps, without a sleep of its own.
class BlockedThread {
 public:
  explicit BlockedThread(std::function<void()> body);
  // Returns when the kernel shows the thread asleep, or when its body has ended.
  void AwaitAsleep() const;
  void Join() { thread_.join(); }

 private:
  std::atomic<int> id_ = 0;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;  // last: its body uses the others
};

// A communicator per rank, each with an interrupt of its own.
class Group {
 public:
  Group(Transport transport, int size);
  int size() const { return static_cast<int>(communicators_.size()); }
  Communicator& at(int rank) { return *communicators_[static_cast<size_t>(rank)]; }
  const std::vector<std::unique_ptr<Context>>& contexts() const { return contexts_; }
  FakeInterrupt& interrupt(int rank) { return *interrupts_[static_cast<size_t>(rank)]; }
  // Ends that rank as the death of its process would.
  void Kill(int rank) { communicators_[static_cast<size_t>(rank)].reset(); }
  // Runs `body(rank)` in a thread per rank and joins them.
  void Run(const std::function<void(int)>& body) const;

 private:
  std::vector<std::unique_ptr<FakeInterrupt>> interrupts_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace elastic::internal
