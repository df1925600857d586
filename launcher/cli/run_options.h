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
  std::optional<int> max_np;
  std::string hosts;
  int no_progress_limit = kNoProgressLimitDefault;
  bool allow_restart_from_zero = false;
  Duration start_timeout = kStartTimeoutDefault;
  Duration heartbeat_timeout = kHeartbeatTimeoutDefault;
  Duration elastic_timeout = kElasticTimeoutDefault;
  Duration entry_timeout = kEntryTimeoutDefault;
  Duration grace_period = kGracePeriodDefault;
  std::string rendezvous;    // address of a standing server; empty: one in this process
  Duration orphan_limit{0};  // 0: as the server is
  std::string status_address = "127.0.0.1:0";
  Severity log_level = Severity::kInfo;
  bool help = false;
  bool version = false;
  std::vector<std::string> command;
};

// The job that the options ask for. Pure.
// Errors: of CheckJob, ParseHostList and LocalDataAddress, and INVALID_ARGUMENT for what is
// missing.
StatusOr<JobSpec> MakeJobSpec(const RunOptions& options, std::string job_id);

}  // namespace elastic::internal
