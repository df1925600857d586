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
// communicator is unusable like after UNAVAILABLE; INVALID_ARGUMENT also when ranks turn out to
// make different calls (the message names both), which ends the communicator too.
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
  // blocks; Await blocks until every rank has begun (above kFullMeshMax ranks: has awaited, since
  // values travel in rounds). Gives the minimum of each half. No other operation may run on this
  // communicator in between (FAILED_PRECONDITION); another channel's may.
  struct MinPair {
    uint32_t first = 0;
    uint32_t second = 0;
    friend bool operator==(const MinPair&, const MinPair&) = default;
  };
  Status BeginMinPair(MinPair value);
  StatusOr<MinPair> AwaitMinPair(std::optional<Instant> deadline = std::nullopt);

  // Takes the connections back out, while nothing was begun on them yet. After it the communicator
  // can only be destroyed.
  std::unique_ptr<Mesh> Dissolve();

  // Ends the running wait and fails all later calls with ABORTED; closes the connections' traffic,
  // so that the peers' waits end too. From any thread, any number of times, never blocks.
  //
  // A mark alone (Interrupt) ends waits but closes nothing: a host that hears of it later would
  // take the closing for a death and accuse a healthy peer (P18). So when a generation is lost call
  // this (or destroy the communicator) only when its successor's roster has come: by then every
  // counted host has fenced the old one, and its waits answer ABORTED.
  void Abort();
  // Why no operation is possible any more, or OK. Wrong arguments leave it as it was.
  Status failure() const;
  // Set when an operation failed because this peer's connection ended or was reset.
  std::optional<WorkerIncarnation> broken_peer() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
