#pragma once

#include <cstdio>

#include "rendezvous/base/status.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// Prints the one line of a job that cannot start and returns its exit code, 2.
inline int RefuseToStart(const Status& reason) {
  std::fprintf(stderr, "elastic-run: %s\n", reason.message().c_str());
  return static_cast<int>(JobExit::kUsage);
}

}  // namespace elastic::internal
