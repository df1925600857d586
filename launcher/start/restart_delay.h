#pragma once

#include <algorithm>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

// How long to wait before something that died is started again: not at all the first time, then
// kRestartDelayFirst, doubling up to kRestartDelayMax while it keeps dying. A life longer than
// kRestartDelayMax is taken as sound and starts the count anew. Pure.
class RestartDelay {
 public:
  Duration AfterDeath(Instant started, Instant died) {
    if (died - started > kRestartDelayMax) {
      next_ = Duration::zero();
    }
    const Duration delay = next_;
    next_ = delay == Duration::zero() ? kRestartDelayFirst : std::min(2 * delay, kRestartDelayMax);
    return delay;
  }

 private:
  Duration next_ = Duration::zero();
};

}  // namespace elastic::internal
