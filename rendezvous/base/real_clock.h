#pragma once

#include <string>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// The only place that asks the kernel for the time.
Instant Now();

// Local wall time as `2026-01-31 12:00:00.123`, for people's logs; never for intervals.
std::string WallTimeText();

}  // namespace elastic::internal
