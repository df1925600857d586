#include "rendezvous/base/sched_slice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace elastic::internal {

namespace {

// Layout of struct sched_attr, version 0 (sched_setattr(2)); glibc 2.36 does not declare it, and
// linux/sched/types.h clashes with <sched.h>.
struct SchedAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
static_assert(sizeof(SchedAttributes) == 48);

constexpr uint64_t kFlagResetOnFork = 1;
constexpr uint64_t kShortSliceNanoseconds = 100'000;

// Only slice and inheritance change: a nice value that the user chose stays.
Status SetSlice(uint64_t nanoseconds, bool reset_on_fork) {
  SchedAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) {
    return ErrnoError(errno, "sched_getattr");
  }
  attributes.size = sizeof attributes;
  attributes.runtime = nanoseconds;
  attributes.flags = reset_on_fork ? kFlagResetOnFork : 0;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) {
    return ErrnoError(errno, "sched_setattr");
  }
  return OkStatus();
}

}  // namespace

Status RequestShortSlice(SliceInheritance inheritance) {
  return SetSlice(kShortSliceNanoseconds, inheritance == SliceInheritance::kResetOnFork);
}

Status ResetSlice() { return SetSlice(0, false); }

}  // namespace elastic::internal
