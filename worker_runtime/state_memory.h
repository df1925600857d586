#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// The program's state: two buffers of equal size in one memfd (P8). One is committed (`current`),
// the other (`next`) is being computed, received or thrown away; Flip exchanges them. Nothing is
// ever copied between them: a commit costs no memory traffic but the digest.
//
// The memfd is the guardian's, so the committed buffer outlives this process. Both buffers are
// prefaulted, with huge pages where the kernel gives them: the path of a recovery must not touch
// memory for the first time.
//
// Not thread-safe: the session that owns it guards it.
class StateMemory {
 public:
  // Without state: both buffers are empty.
  StateMemory() = default;
  // Sizes the memfd for two buffers of `bytes` and maps it. `fd` stays the caller's.
  // Errors: INVALID_ARGUMENT for 0 or more than kStateBytesMax; RESOURCE_EXHAUSTED without memory.
  static StatusOr<std::unique_ptr<StateMemory>> Create(int fd, size_t bytes);
  ~StateMemory();
  StateMemory(const StateMemory&) = delete;
  StateMemory& operator=(const StateMemory&) = delete;

  size_t bytes() const { return bytes_; }
  std::span<std::byte> current() const { return Buffer(current_index_); }
  std::span<std::byte> next() const { return Buffer(1 - current_index_); }
  // Where `next` begins in the memfd.
  size_t next_offset() const { return static_cast<size_t>(1 - current_index_) * stride_; }
  void Flip() { current_index_ = 1 - current_index_; }

 private:
  StateMemory(std::byte* base, size_t bytes, size_t stride)
      : base_(base), bytes_(bytes), stride_(stride) {}
  std::span<std::byte> Buffer(int index) const {
    return {base_ + static_cast<size_t>(index) * stride_, bytes_};
  }

  std::byte* const base_ = nullptr;
  const size_t bytes_ = 0;
  const size_t stride_ = 0;
  int current_index_ = 0;
};

}  // namespace elastic::internal
