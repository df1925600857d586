#pragma once

#include <string_view>

#include "rendezvous/base/report.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// The words that elastic-ctl shows for enums, in tables and in JSON. Scripts compare them: a word
// is never changed.
std::string_view NameOf(JobState state);
std::string_view NameOf(WaitReason reason);
std::string_view NameOf(Phase phase);
std::string_view NameOf(WorkerLife life);
std::string_view NameOf(DeathCause cause);

// Age of a worker's newest beat when the server answered: what its agent saw, and how old that
// report was.
Duration BeatAge(const JobView& view, const WorkerView& worker);

}  // namespace elastic::internal
