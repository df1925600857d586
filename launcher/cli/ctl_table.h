#pragma once

#include <string>

#include "rendezvous/core/job.h"

namespace elastic::internal {

// The picture of a job as elastic-ctl prints it for people. Pure.
std::string StatusTable(const JobView& view);

}  // namespace elastic::internal
