#pragma once

#include <sys/resource.h>

namespace elastic::internal {

// Raises this process's descriptor limit as far as allowed and returns the former one, which
// programs started from here get back (select() is undefined above 1024).
inline rlimit RaiseDescriptorLimit() {
  rlimit former{};
  getrlimit(RLIMIT_NOFILE, &former);
  const rlimit raised{former.rlim_max, former.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  return former;
}

}  // namespace elastic::internal
