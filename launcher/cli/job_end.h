#pragma once

#include <optional>
#include <string>

#include "rendezvous/base/mutex.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// How the job ended: set once by the server's driver thread, awaited by the main loop.
class JobEnd {
 public:
  struct Result {
    int exit_code = 0;
    std::string reason;
    bool workers_run = false;  // no server stops them: agents do, when their inputs are closed
  };
  JobEnd();

  void Set(int exit_code, const std::string& reason,
           bool workers_run = false);  // later calls change nothing
  std::optional<Result> Get() const;
  // Readable once it is set.
  int fd() const { return set_.get(); }

 private:
  UniqueFd set_;
  mutable Mutex mutex_;
  std::optional<Result> result_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
