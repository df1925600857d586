#include "worker_runtime/state_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

Status CheckSize(size_t bytes) {
  if (bytes > kStateBytesMax) {
    return InvalidArgumentError(
        StrCat("state of ", bytes, " bytes: the limit is ", kStateBytesMax, " bytes"));
  }
  return OkStatus();
}

StatusOr<UniqueFd> Duplicate(int fd) {
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!own.valid()) {
    return ErrnoError(errno, "duplicating the descriptor of the state's memory");
  }
  return own;
}

}  // namespace

StateMemory::Area& StateMemory::Area::operator=(Area&& other) noexcept {
  if (base != nullptr) {
    munmap(base, capacity);
  }
  base = std::exchange(other.base, nullptr);
  offset = std::exchange(other.offset, 0);
  capacity = std::exchange(other.capacity, 0);
  bytes = std::exchange(other.bytes, 0);
  is_new = std::exchange(other.is_new, false);
  return *this;
}

StateMemory::Area::~Area() {
  if (base != nullptr) {
    munmap(base, capacity);
  }
}

StatusOr<std::unique_ptr<StateMemory>> StateMemory::Create(int fd, size_t bytes) {
  if (bytes == 0) {
    return InvalidArgumentError(StrCat("state of 0 bytes: give 1 to ", kStateBytesMax, " bytes"));
  }
  RETURN_IF_ERROR(CheckSize(bytes));
  ASSIGN_OR_RETURN(UniqueFd own, Duplicate(fd));
  std::unique_ptr<StateMemory> memory(new StateMemory(std::move(own), false));
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(memory->areas_[i], memory->MapBeside(memory->areas_[1 - i], bytes));
    RETURN_IF_ERROR(Prefault(memory->areas_[i].span()));
  }
  return memory;
}

StatusOr<std::unique_ptr<StateMemory>> StateMemory::CreateGrowing(int fd) {
  ASSIGN_OR_RETURN(UniqueFd own, Duplicate(fd));
  return std::unique_ptr<StateMemory>(new StateMemory(std::move(own), true));
}

// In front of the other area if there is room, else behind it, so that the memfd stays as small as
// the two need.
StatusOr<StateMemory::Area> StateMemory::MapBeside(const Area& other, size_t bytes) const {
  const size_t unit = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const size_t capacity = RoundUp(bytes, unit);
  const bool in_front = other.base == nullptr || capacity <= other.offset;
  const size_t offset = in_front ? 0 : RoundUp(other.offset + other.capacity, unit);
  const size_t end = offset + capacity;
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0 || (static_cast<size_t>(info.st_size) < end &&
                                       ftruncate(fd_.get(), static_cast<off_t>(end)) != 0)) {
    return ResourceExhaustedError(
        StrCat("cannot size the state's memory to ", end, " bytes: ", std::strerror(errno)));
  }
  void* base = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                    static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    return ResourceExhaustedError(
        StrCat("cannot map ", capacity,
               " bytes for one of the state's two copies: ", std::strerror(errno)));
  }
  // Only advice: without huge pages everything works, with more TLB misses.
  (void)madvise(base, capacity, MADV_HUGEPAGE);
  Area area(static_cast<std::byte*>(base), offset, capacity);
  area.bytes = bytes;
  area.is_new = true;
  return area;
}

Status StateMemory::ResizeNext(size_t bytes) {
  ELASTIC_CHECK(grows_);
  Area& next = areas_[1 - current_index_];
  next.bytes = 0;
  RETURN_IF_ERROR(CheckSize(bytes));
  if (bytes > next.capacity) {
    const size_t offset = next.offset;
    const size_t capacity = next.capacity;
    next = Area();
    if (capacity > 0) {
      // Without it the old memory stays taken, nothing worse.
      (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(offset), static_cast<off_t>(capacity));
    }
    ASSIGN_OR_RETURN(next, MapBeside(areas_[current_index_], bytes));
  }
  next.bytes = bytes;
  return OkStatus();
}

std::span<std::byte> StateMemory::TakeNewMemory() {
  Area& next = areas_[1 - current_index_];
  return std::exchange(next.is_new, false) ? next.span() : std::span<std::byte>();
}

// Kernels before 5.14 know no MADV_POPULATE_WRITE: touching each page does the same.
Status StateMemory::Prefault(std::span<std::byte> memory) {
  if (memory.empty() || madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) {
    return OkStatus();
  }
  if (errno != EINVAL) {
    return ResourceExhaustedError(StrCat("no memory for the state: ", memory.size(),
                                         " bytes for one of its two copies (", std::strerror(errno),
                                         "); use a smaller state or a larger memory limit"));
  }
  for (size_t at = 0; at < memory.size(); at += kPageBytes) {
    auto* const page = reinterpret_cast<volatile std::byte*>(memory.data() + at);
    *page = *page;
  }
  return OkStatus();
}

}  // namespace elastic::internal
