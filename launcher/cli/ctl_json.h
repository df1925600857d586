#pragma once

#include <string>

#include "rendezvous/core/job.h"

namespace elastic::internal {

// The picture of a job as JSON for scripts (RFC 8259), one object. Keys that are durations carry
// the unit `_ms`; what is not known is null; enum words are those of ctl_names.h. Keys are added,
// never renamed. Pure; `now` turns the wait's end into the time that is left.
std::string StatusJson(const JobView& view, Instant now);

}  // namespace elastic::internal
