#pragma once

#include <functional>

#include "rendezvous/base/status.h"
#include "worker_runtime/session.h"

namespace elastic::internal {

// What the program's function answered.
enum class Verdict { kDone, kAborted, kFailed };

// `run` over the calls that a program with its own loop has too: join, call, finish, and from the
// start again whenever the generation ended before the job did.
// Errors: CANCELLED when the function failed by its own account; else those of Join and Finish.
Status RunLoop(Session& session, const std::function<Verdict()>& function);

}  // namespace elastic::internal
