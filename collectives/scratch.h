#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/limits.h"
#include "rendezvous/base/mutex.h"

namespace elastic::internal {

// Working memory of collectives that outlives generations: a new communicator stands on the
// recovery path, where touching a page for the first time costs more than the page's traffic.
// Thread-safe; shared by the context and the meshes it made, whichever ends last.
class ScratchPool {
 public:
  // Allocates and touches `blocks` blocks of kScratchBytes.
  explicit ScratchPool(size_t blocks);

  struct Deleter {
    void operator()(std::byte* block) const;
  };
  using Block = std::unique_ptr<std::byte, Deleter>;

  Block Take();  // a new one if none is free
  void Give(Block block);

 private:
  Mutex mutex_;
  std::vector<Block> free_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
