#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// What stands on elastic-run's command line, defaults filled in. flag_table.cc says which flag
// writes which member.
struct RunOptions {
  std::optional<int> np;
  std::optional<int> min_np;
  std::string hosts;
  Duration heartbeat_timeout = kHeartbeatTimeoutDefault;
  Duration elastic_timeout = kElasticTimeoutDefault;
  Duration entry_timeout = kEntryTimeoutDefault;
  Duration grace_period = kGracePeriodDefault;
  std::string status_address = "127.0.0.1:0";
  Severity log_level = Severity::kInfo;
  bool help = false;
  bool version = false;
  std::vector<std::string> command;
};

// A heartbeat time-out must leave room for one lost beat, or a busy host counts as a lost one.
inline constexpr Duration kHeartbeatTimeoutMin = 2 * kAgentBeatInterval;

// The job that the options ask for; `job_id` is left empty. Pure.
// Errors: INVALID_ARGUMENT, FAILED_PRECONDITION or RESOURCE_EXHAUSTED with one line that names the
// value and the remedy.
StatusOr<JobSpec> MakeJobSpec(const RunOptions& options);

}  // namespace elastic::internal
