#pragma once

#include <grpc/support/time.h>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// A gRPC deadline `from_now` on. gRPC adds a time span to its own clock, so that ours stays the
// only place that asks for the time, and a step of the wall clock does no harm.
inline gpr_timespec GrpcDeadline(Duration from_now) {
  return gpr_time_from_nanos(from_now.count(), GPR_TIMESPAN);
}

}  // namespace elastic::internal
