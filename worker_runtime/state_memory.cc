#include "worker_runtime/state_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Kernels before 5.14 know no MADV_POPULATE_WRITE: touching each page does the same.
Status Prefault(std::byte* base, size_t bytes) {
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) {
    return OkStatus();
  }
  if (errno != EINVAL) {
    return ResourceExhaustedError(StrCat("no memory for the state: ", bytes,
                                         " bytes for its two buffers (", std::strerror(errno),
                                         "); use a smaller state or a larger memory limit"));
  }
  for (size_t at = 0; at < bytes; at += kPageBytes) {
    *reinterpret_cast<volatile std::byte*>(base + at) = std::byte{0};
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<StateMemory>> StateMemory::Create(int fd, size_t bytes) {
  if (bytes == 0 || bytes > kStateBytesMax) {
    return InvalidArgumentError(
        StrCat("state of ", bytes, " bytes: give 1 to ", kStateBytesMax, " bytes"));
  }
  const size_t stride = RoundUp(bytes, bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes);
  if (ftruncate(fd, static_cast<off_t>(2 * stride)) != 0) {
    return ResourceExhaustedError(
        StrCat("cannot size the state's memory to ", 2 * stride, " bytes: ", std::strerror(errno)));
  }
  void* base = mmap(nullptr, 2 * stride, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return ResourceExhaustedError(
        StrCat("cannot map the state's ", 2 * stride, " bytes: ", std::strerror(errno)));
  }
  // Only advice: without huge pages everything works, with more TLB misses.
  (void)madvise(base, 2 * stride, MADV_HUGEPAGE);
  std::unique_ptr<StateMemory> memory(
      new StateMemory(static_cast<std::byte*>(base), bytes, stride));
  RETURN_IF_ERROR(Prefault(memory->base_, 2 * stride));
  return memory;
}

StateMemory::~StateMemory() {
  if (base_ != nullptr) {
    munmap(base_, 2 * stride_);
  }
}

}  // namespace elastic::internal
