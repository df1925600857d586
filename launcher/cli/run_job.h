#pragma once

#include <string>

#include "launcher/cli/job_signals.h"
#include "launcher/cli/run_options.h"

namespace elastic::internal {

// Runs one job to its end: the rendezvous server in this process, one agent per host, output and
// signals. Returns elastic-run's exit code. Nothing is started when it returns 2.
// Requires: `options` passed MakeJobSpec, which gave `job`; the calling thread is the only one.
int RunJob(const RunOptions& options, const JobSpec& job, const std::string& agent_program,
           JobSignals& signals);

}  // namespace elastic::internal
