#pragma once

#include <string>

#include "rendezvous/base/status.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// Reads the status of a running job once. `address` is HOST:PORT as elastic-run prints it, or
// unix:PATH. Blocks; from any thread.
// Errors: UNAVAILABLE when nobody answers there within `time_limit`; INVALID_ARGUMENT when what
// answers is not a status service that this version understands.
StatusOr<JobView> GetStatus(const std::string& address, Duration time_limit);

}  // namespace elastic::internal
