#include "worker_runtime/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

namespace elastic::internal {

ForkMark::ForkMark() {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return;
  }
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return;
  }
  page_ = static_cast<unsigned*>(page);
}

void ForkMark::Set() {
  pid_ = getpid();
  if (page_ != nullptr) {
    *page_ = 1;
  }
}

bool ForkMark::Here() const { return page_ != nullptr ? *page_ != 0 : pid_ == getpid(); }

}  // namespace elastic::internal
