#include "worker_runtime/run_loop.h"

namespace elastic::internal {

Status RunLoop(Session& session, const std::function<Verdict()>& function) {
  if (session.done()) {
    return FailedPreconditionError("elastic_run: the job is finished; exit with 0");
  }
  while (true) {
    RETURN_IF_ERROR(session.Join(std::nullopt));
    if (session.done()) {
      return OkStatus();
    }
    switch (function()) {
      case Verdict::kFailed: return CancelledError("the function gave up");
      case Verdict::kAborted: continue;
      case Verdict::kDone: break;
    }
    Status finished = session.Finish(std::nullopt);
    if (finished.ok() || finished.code() != StatusCode::kAborted) {
      return finished;
    }
  }
}

}  // namespace elastic::internal
