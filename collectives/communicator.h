#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>

#include "collectives/types.h"
#include "rendezvous/base/agreement.h"

namespace elastic::internal {

class Mesh;  // transport/mesh.h: the connected edges of one generation and channel

// Collectives over one generation's edges. One operation at a time, all ranks in the same order;
// Abort from any thread. Results are bit-identical on all ranks: each element is reduced in one
// order, chosen by rank, whatever the arrival order.
//
// All operations but the broadcast are world collectives: whatever their size, they are complete on
// no rank before every rank has called them, and they carry an agreement.
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
  // Parts of any sizes, the same numbers on all ranks: rank r's has bytes_of[r] bytes and lies in
  // `out` behind those of the ranks before it. `in` may be that part.
  Event AllGatherV(const void* in, void* out, std::span<const size_t> bytes_of, Stream stream = {},
                   std::optional<Instant> deadline = std::nullopt);
  // `in` holds size() * count elements, `out` count: rank r gets the reduction of part r. `out` may
  // be that part of `in`, else they do not overlap.
  Event ReduceScatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                      Stream stream = {}, std::optional<Instant> deadline = std::nullopt);
  Event Barrier(Stream stream = {}, std::optional<Instant> deadline = std::nullopt);

  // A world collective for its agreement alone.
  Event Agree(Stream stream = {}, std::optional<Instant> deadline = std::nullopt);
  // Tells all peers that this rank makes no operation any more: one that a peer waits in, or begins
  // after it, fails there as a different call does. Waits for no peer that reads what was sent.
  Status SayFinished(std::optional<Instant> deadline = std::nullopt);
  // What this rank contributes to the world collectives from now on; nothing at first. Between
  // operations, by their thread.
  void Contribute(const Agreement& own);
  // The merge over all ranks of what they contributed to the newest world collective that was
  // complete here.
  const Agreement& agreed() const;

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
