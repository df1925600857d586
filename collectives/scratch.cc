#include "collectives/scratch.h"

#include <cstring>
#include <new>

namespace elastic::internal {

namespace {

constexpr std::align_val_t kAlignment{4096};

ScratchPool::Block NewBlock() {
  ScratchPool::Block block(static_cast<std::byte*>(::operator new(kScratchBytes, kAlignment)));
  std::memset(block.get(), 0, kScratchBytes);
  return block;
}

}  // namespace

void ScratchPool::Deleter::operator()(std::byte* block) const {
  ::operator delete(block, kAlignment);
}

ScratchPool::ScratchPool(size_t blocks) {
  for (size_t i = 0; i < blocks; ++i) {
    free_.push_back(NewBlock());
  }
}

ScratchPool::Block ScratchPool::Take() {
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      Block block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
  }
  return NewBlock();
}

void ScratchPool::Give(Block block) {
  MutexLock lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace elastic::internal
