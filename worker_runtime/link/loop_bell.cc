#include "worker_runtime/link/loop_bell.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace elastic::internal {

StatusOr<int> LoopBell::Descriptor() {
  if (!fd_.valid()) {
    fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd_.valid()) {
      return ErrnoError(errno, "eventfd for elastic_event_fd");
    }
  }
  return fd_.get();
}

void LoopBell::Ring(bool ring) {
  if (!fd_.valid() || ring == rings_) {
    return;
  }
  rings_ = ring;
  eventfd_t rings = 0;
  if (ring) {
    (void)eventfd_write(fd_.get(), 1);
  } else {
    (void)eventfd_read(fd_.get(), &rings);
  }
}

}  // namespace elastic::internal
