#pragma once

#include "rendezvous/base/log.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// What calls of the program's thread answer when they can do nothing.

inline Status GenerationIsOver() {
  return AbortedError(
      "this generation is over: return ELASTIC_ABORTED from the function, or call elastic_join "
      "again");
}

inline Status OutOfTime(const char* what) {
  return DeadlineExceededError(StrCat("the deadline of the call has passed while ", what));
}

}  // namespace elastic::internal
