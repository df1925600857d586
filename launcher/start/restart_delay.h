#pragma once

#include "rendezvous/base/restart_delay.h"

namespace elastic::internal {

// How long to wait before an agent that died is started again. A life longer than kRestartDelayMax
// is taken as sound and starts the count of deaths anew. Pure.
class RestartDelay {
 public:
  Duration AfterDeath(Instant started, Instant died) {
    deaths_ = died - started > kRestartDelayMax ? 1 : deaths_ + 1;
    return RestartDelayAfter(deaths_);
  }

 private:
  int deaths_ = 0;
};

}  // namespace elastic::internal
