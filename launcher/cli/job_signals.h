#pragma once

#include <optional>

#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The signals that a running job answers, as a descriptor for the main loop: SIGINT, SIGTERM,
// SIGHUP, SIGTSTP, which must not stop the launcher (its workers would be taken for lost), and
// SIGCHLD, which only wakes the loop. Make it before any thread starts: threads inherit that these
// signals are blocked.
class JobSignals {
 public:
  JobSignals();

  int fd() const { return fd_.get(); }
  // The number of the next signal that has come, if there is one.
  std::optional<int> Take();

 private:
  UniqueFd fd_;
};

}  // namespace elastic::internal
