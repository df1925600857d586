#pragma once

#include <algorithm>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

// How long to wait before something that has died `deaths` times in a row (1 or more) is started
// again: not at all the first time, then kRestartDelayFirst, doubling up to kRestartDelayMax.
constexpr Duration RestartDelayAfter(int deaths) {
  if (deaths <= 1) {
    return Duration::zero();
  }
  Duration delay = kRestartDelayFirst;
  for (int death = 2; death < deaths && delay < kRestartDelayMax; ++death) {
    delay *= 2;
  }
  return std::min(delay, kRestartDelayMax);
}

}  // namespace elastic::internal
