#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "rendezvous/base/hash.h"

namespace elastic::internal {

// Asked once per kAskBytes of a long pass over memory; true ends it.
using EndEarly = std::function<bool()>;
inline constexpr size_t kAskBytes = size_t{1} << 20;

// HashBytes; nothing when `over` said so.
std::optional<uint64_t> HashUnlessOver(std::span<const std::byte> memory, const EndEarly& over);

// Copies pieces of memory one behind the other into `target`, each padded with zeros to a multiple
// of Hasher::kBlockBytes, and gives HashBytes of all that was written. Each byte is read from
// memory once. Large copies are written past the caches, which they would only empty: nobody reads
// a committed copy soon, and a line that is not cached need not be read before it is written.
class HashingCopy {
 public:
  // `target`, aligned to 16 bytes, has room for all pieces and outlives this.
  explicit HashingCopy(std::span<std::byte> target);

  // False when `over` said so: then the copy is in pieces.
  bool Append(std::span<const std::byte> piece, const EndEarly& over);
  // Once, after the last piece: from now on other threads may be handed the copy.
  uint64_t Finish();

 private:
  void CopyChunk(std::span<const std::byte> chunk);

  std::byte* at_;
  const bool past_caches_;
  Hasher hasher_;
};

// Copies `from` to `to`, likewise: memcpy does so only from a large part of the last cache on, and
// when all workers of a host copy at once it is the memory that they wait for.
void CopyPastCaches(std::byte* to, std::span<const std::byte> from);

}  // namespace elastic::internal
