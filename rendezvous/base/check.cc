#include "rendezvous/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace elastic::internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "elastic: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace elastic::internal
