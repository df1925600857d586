#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The committed copies of the program's state: two areas of one memfd (P8). One is committed
// (`current`), the other (`next`) is being computed, copied, received or thrown away; Flip
// exchanges them. So whatever ends in the middle of `next`, the committed one is whole.
//
// The memfd is the guardian's, so the committed area outlives this process. Areas are prefaulted,
// with huge pages where the kernel gives them: the path of a recovery must not touch memory for the
// first time.
//
// Not thread-safe: the session that owns it guards it.
class StateMemory {
 public:
  // Without state: both areas are empty.
  StateMemory() = default;
  // For state that the program computes here: both areas have `bytes` bytes for good, zeroed.
  // `fd` stays the caller's.
  // Errors: INVALID_ARGUMENT for 0 or more than kStateBytesMax; RESOURCE_EXHAUSTED without memory.
  static StatusOr<std::unique_ptr<StateMemory>> Create(int fd, size_t bytes);
  // For copies of state that lies elsewhere: both areas are empty until ResizeNext.
  static StatusOr<std::unique_ptr<StateMemory>> CreateGrowing(int fd);
  ~StateMemory() = default;
  StateMemory(const StateMemory&) = delete;
  StateMemory& operator=(const StateMemory&) = delete;

  // Whether the areas take the size that is needed.
  bool grows() const { return grows_; }
  std::span<std::byte> current() const { return areas_[current_index_].span(); }
  std::span<std::byte> next() const { return areas_[1 - current_index_].span(); }
  // Where `next` begins in the memfd.
  size_t next_offset() const { return areas_[1 - current_index_].offset; }
  void Flip() { current_index_ = 1 - current_index_; }

  // Gives `next` that many bytes, in its old memory if there is room; what was in it is lost.
  // `current` stays where it is. After an error `next` is empty. Requires: grows().
  // Errors: INVALID_ARGUMENT for more than kStateBytesMax; RESOURCE_EXHAUSTED without memory.
  Status ResizeNext(size_t bytes);
  // `next` if its memory is new and was not asked for here yet, else nothing: for Prefault, which
  // takes long and needs no guard.
  std::span<std::byte> TakeNewMemory();

  // Has memory ready before it is touched. Errors: RESOURCE_EXHAUSTED.
  static Status Prefault(std::span<std::byte> memory);

 private:
  // One mapping. Both of a memory's are apart, so that one may move while the other is served.
  struct Area {
    Area() = default;
    Area(std::byte* mapped, size_t begin, size_t room)
        : base(mapped), offset(begin), capacity(room) {}
    Area(Area&& other) noexcept { *this = std::move(other); }
    Area& operator=(Area&& other) noexcept;
    ~Area();
    std::span<std::byte> span() const { return {base, bytes}; }

    std::byte* base = nullptr;
    size_t offset = 0;
    size_t capacity = 0;
    size_t bytes = 0;
    bool is_new = false;
  };

  StateMemory(UniqueFd fd, bool grows) : fd_(std::move(fd)), grows_(grows) {}
  StatusOr<Area> MapBeside(const Area& other, size_t bytes) const;

  const UniqueFd fd_ = UniqueFd();
  const bool grows_ = false;
  Area areas_[2];
  int current_index_ = 0;
};

}  // namespace elastic::internal
