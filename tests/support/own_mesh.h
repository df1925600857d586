#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "rendezvous/base/unique_fd.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {

// The communication of a program that brings its own: a sum over all ranks, through TCP connections
// of each rank to rank 0. It takes from the runtime what NCCL or UCX would: who the members are,
// put and get to find each other, and the descriptor that ends a wait when a member is lost.
//
// It checks what it gets: what was put in another generation, or by another process than the member
// that is rank 0, ends the process with kStaleExit (scenario 64).
class OwnMesh {
 public:
  static constexpr int kStaleExit = 72;

  explicit OwnMesh(Runtime& runtime) : runtime_(runtime) {}

  // Connects the members of the present generation and drops older connections. `put_delay` passes
  // before rank 0 puts its address, so that others ask before it is there. Errors: ABORTED.
  Status Connect(std::chrono::microseconds put_delay);
  // Errors: ABORTED when the generation is over.
  Status Sum(std::array<int64_t, 2>& sums);

 private:
  Status Listen(std::chrono::microseconds put_delay);
  Status Dial();
  void CheckEarlierKeys();
  // Waits for the socket or the end of the generation.
  Status WaitFor(int fd, short events);
  Status WaitForTheEnd();
  Status Send(int fd, const void* data, size_t bytes);
  Status Receive(int fd, void* data, size_t bytes);

  Runtime& runtime_;
  std::vector<UniqueFd> peers_;  // rank 0: of the others, in rank order; else: to rank 0
};

}  // namespace elastic::internal::testing
