#pragma once

#include "rendezvous/base/status.h"

namespace elastic::internal {

enum class SliceInheritance {
  kInherited,    // by threads, fork and exec; reset it before a user's program is started
  kResetOnFork,  // threads and processes started by this one get the default back
};

// Asks the kernel to let the calling thread preempt sooner: a slice of 0.1 ms instead of 1.4 ms,
// and no more of the processor than before. Threads on the recovery path call it; on a busy machine
// it is the difference between 4 and 10 ms for a whole re-form. Needs no privilege.
// Errors: those of sched_setattr; kernels before 6.12 accept it without effect. Callers go on.
Status RequestShortSlice(SliceInheritance inheritance);

// Back to the default slice.
Status ResetSlice();

}  // namespace elastic::internal
