#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/base/status.h"
#include "worker_runtime/hashing_copy.h"
#include "worker_runtime/state_image.h"

namespace elastic::internal {

// A piece of state in the program's own memory, which the program changes in place.
struct StateItem {
  std::string name;
  std::byte* memory = nullptr;
  size_t bytes = 0;
  // Memory for the item in that size, called by Restore when the committed size is another one;
  // null: there is none. With 0 the item is not part of the state and is dropped. May be empty:
  // then the sizes must be equal.
  std::function<void*(size_t bytes)> resize;
};

// The items of a program, and how they become a committed copy and come back (P8).
//
// The problem: the program may register, resize and unregister between commits, and a loss takes it
// back to the commit before, when the items were others. The idea: changes are part of the commit.
// Pack copies what is registered now; Committed says that this copy stands; Restore makes both the
// items and their bytes those of the image that it is given, changes since then are taken back. So
// memory that was given up since the newest commit may be written to by a Restore.
//
// Not thread-safe: of the program's thread.
class StateItems {
 public:
  // Errors: INVALID_ARGUMENT for a name that is empty or too long, or no memory;
  // FAILED_PRECONDITION for a name that is registered; RESOURCE_EXHAUSTED for too many items.
  Status Register(StateItem item);
  // Errors: INVALID_ARGUMENT for an unknown name or no memory.
  Status Resize(const std::string& name, void* memory, size_t bytes);
  // Errors: INVALID_ARGUMENT for an unknown name.
  Status Unregister(const std::string& name);
  // Null if there is none of that name.
  const StateItem* Find(const std::string& name) const;

  // Of what Pack would write now. Errors: RESOURCE_EXHAUSTED.
  StatusOr<size_t> ImageBytes();
  // Writes the image of all items into `image`, which has ImageBytes() bytes, and gives its digest,
  // in one pass over the memory; nothing when `over` said so. Requires: ImageBytes() was OK since
  // the newest change.
  std::optional<uint64_t> Pack(std::span<std::byte> image, const EndEarly& over);
  // The newest Pack is committed.
  void Committed();

  // Errors: those of DecodeTable; INVALID_ARGUMENT when the items do not fit the image and have no
  // `resize`; RESOURCE_EXHAUSTED when `resize` gave no memory. After an error the items' bytes are
  // as they were, but `resize` may have been called for some.
  Status Restore(std::span<const std::byte> image);

 private:
  using Items = std::map<std::string, StateItem>;

  Status Place();  // makes layout_ valid
  StatusOr<StateItem> TargetOf(const StateImageItem& wanted) const;
  Status DropUnlessIn(const Items& restored);

  Items registered_;
  Items committed_;  // with the memory that they had then
  bool any_committed_ = false;
  bool changed_ = false;                    // registered_ is not what committed_ was made from
  std::optional<StateImageLayout> layout_;  // of registered_, once it was needed
  std::vector<std::byte> table_;
};

// A process has either the runtime's two buffers or items of its own.
Status MixedStateError();
// The first item is registered before the first join: the memory for its copies is made there.
Status FirstItemTooLateError(const std::string& name);

}  // namespace elastic::internal
