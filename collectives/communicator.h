#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "collectives/types.h"

namespace elastic::internal {

class Mesh;  // transport/mesh.h: the connected edges of one generation and channel

// Collectives over one generation's edges. One operation at a time, all ranks in the same order;
// Abort from any thread. Results are bit-identical on all ranks: each element is reduced in one
// order, chosen by rank, whatever the arrival order.
//
// Errors of every operation: ABORTED once the generation is over or Abort was called (the contents
// of `out` are then undefined); UNAVAILABLE when a peer's connection broke (see broken_peer), after
// which all further operations fail; INVALID_ARGUMENT for sizes or types out of range, before a
// byte is sent; DEADLINE_EXCEEDED when `deadline` was given and passed, after which the
// communicator is unusable like after UNAVAILABLE.
class Communicator {
 public:
  // `interrupt` must outlive the communicator.
  Communicator(std::unique_ptr<Mesh> mesh, const Interrupt& interrupt);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  const GenerationId& generation() const;

  // `in` and `out` hold `count` elements and may be the same. Average divides the sum by size().
  Event AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                  Stream stream = {}, std::optional<Instant> deadline = std::nullopt);
  // `data` holds `bytes` bytes on every rank; root's are copied to all.
  Event Broadcast(void* data, size_t bytes, int root, Stream stream = {},
                  std::optional<Instant> deadline = std::nullopt);
  // `out` holds size() * bytes bytes; rank r's part begins at r * bytes. `in` may be that part.
  Event AllGather(const void* in, void* out, size_t bytes, Stream stream = {},
                  std::optional<Instant> deadline = std::nullopt);
  Event Barrier(Stream stream = {}, std::optional<Instant> deadline = std::nullopt);

  // The runtime's agreement, in two halves so that it overlaps with the step (P6): Begin never
  // blocks; Await blocks until every rank has begun. Gives the minimum of each half.
  struct MinPair {
    uint32_t first = 0;
    uint32_t second = 0;
    friend bool operator==(const MinPair&, const MinPair&) = default;
  };
  Status BeginMinPair(MinPair value);
  StatusOr<MinPair> AwaitMinPair(std::optional<Instant> deadline = std::nullopt);

  // Ends the running wait and fails all later calls with ABORTED; closes the connections' traffic.
  // From any thread, any number of times, never blocks.
  void Abort();
  // Set when an operation failed because this peer's connection ended or was reset.
  std::optional<WorkerIncarnation> broken_peer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
