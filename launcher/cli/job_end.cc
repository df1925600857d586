#include "launcher/cli/job_end.h"

#include <sys/eventfd.h>

#include "rendezvous/base/check.h"

namespace elastic::internal {

JobEnd::JobEnd() : set_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { ELASTIC_CHECK(set_.valid()); }

void JobEnd::Set(int exit_code, const std::string& reason, bool workers_run) {
  MutexLock lock(mutex_);
  if (!result_) {
    result_ = Result{exit_code, reason, workers_run};
    eventfd_write(set_.get(), 1);
  }
}

std::optional<JobEnd::Result> JobEnd::Get() const {
  MutexLock lock(mutex_);
  return result_;
}

}  // namespace elastic::internal
