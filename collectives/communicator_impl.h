#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/exchange.h"
#include "collectives/schedule/schedule.h"

namespace elastic::internal {

// What the files of Communicator's operations share.
struct Communicator::Impl {
  Impl(std::unique_ptr<Mesh> mesh_in, const Interrupt& interrupt)
      : mesh(std::move(mesh_in)), exchange(*mesh, interrupt) {}

  Position at() const { return {.rank = mesh->rank(), .size = mesh->size()}; }
  bool alone() const { return mesh->size() == 1; }
  // Small operations go straight to every rank if every rank is connected.
  bool Direct(size_t bytes) const {
    return bytes <= kDirectBytesMax && mesh->size() <= kFullMeshMax;
  }
  Status Run(Exchange::Work work, std::optional<Instant> deadline);
  // The same for a world collective: leaves what was agreed.
  Status RunWorld(const Exchange::Work& work, std::optional<Instant> deadline);
  // A world of one is done without a message.
  Status EndAlone();
  Event Gather(std::byte* out, std::optional<Instant> deadline);
  Event WithoutData(OperationKind kind, std::optional<Instant> deadline);
  void ReduceInRankOrder(const Exchange::Work& work, size_t count);
  std::byte* Passing(size_t bytes);

  std::unique_ptr<Mesh> mesh;
  Exchange exchange;
  uint64_t operations = 0;
  Agreement own;
  Agreement agreed;
  std::vector<size_t> parts;  // of a gather
  // Where parts of a reduce-scatter pass through on the ring; grows only.
  std::unique_ptr<std::byte[]> passing;
  size_t passing_bytes = 0;
};

// A partial overlap would reduce numbers that are already reduced.
inline bool PartlyOverlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  const std::less<> before;
  return before(first, second + b_bytes) && before(second, first + a_bytes);
}

inline bool MissingMemory(const void* data, size_t bytes) { return data == nullptr && bytes > 0; }

}  // namespace elastic::internal
