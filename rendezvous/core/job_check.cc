#include "rendezvous/base/log.h"
#include "rendezvous/core/host_list.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

namespace {

Status CheckCounts(const JobSpec& job) {
  if (job.np < 1) {
    return InvalidArgumentError(
        StrCat("-np ", job.np, ": want at least 1 worker, for example -np 4"));
  }
  if (job.np > kMembersMax) {
    return ResourceExhaustedError(
        StrCat("-np ", job.np, ": a job can have at most ", kMembersMax, " workers"));
  }
  if (job.min_np < 1) {
    return InvalidArgumentError(
        StrCat("--min-np ", job.min_np, ": want at least 1, the fewest workers that may train"));
  }
  if (job.min_np > job.np) {
    return InvalidArgumentError(StrCat("--min-np ", job.min_np, " is more than -np ", job.np,
                                       ": lower --min-np or raise -np"));
  }
  if (job.max_np < job.np) {
    return InvalidArgumentError(StrCat("--max-np ", job.max_np, " is less than -np ", job.np,
                                       ": raise --max-np or lower -np"));
  }
  if (job.max_np > kMembersMax) {
    return ResourceExhaustedError(
        StrCat("--max-np ", job.max_np, ": a job can have at most ", kMembersMax, " workers"));
  }
  if (job.no_progress_limit < 0) {
    return InvalidArgumentError(
        StrCat("--no-progress-limit ", job.no_progress_limit,
               ": want how many generations in a row may fail, or 0 for any number"));
  }
  return OkStatus();
}

Status CheckHosts(const JobSpec& job) {
  for (const HostSpec& host : job.hosts) {
    if (host.slots > kSlotsPerHostMax) {
      return ResourceExhaustedError(StrCat("host ", host.name, " has ", host.slots,
                                           " slots, one host can have at most ", kSlotsPerHostMax,
                                           ": spread the workers over more hosts with -H"));
    }
  }
  const int slots = CountSlots(job.hosts);
  if (slots < job.np) {
    return FailedPreconditionError(StrCat("need ", job.np, " slots (-np), have ", slots, " on ",
                                          FormatHostList(job.hosts),
                                          ": give more slots with -H or lower -np"));
  }
  return OkStatus();
}

Status CheckTimes(const JobSpec& job) {
  if (job.heartbeat_timeout < kHeartbeatTimeoutMin) {
    return InvalidArgumentError(
        StrCat("--heartbeat-timeout ", FormatDuration(job.heartbeat_timeout), ": want at least ",
               FormatDuration(kHeartbeatTimeoutMin), ", two heartbeats of an agent"));
  }
  if (job.start_timeout == Duration::zero()) {
    return InvalidArgumentError(
        StrCat("--start-timeout 0: no worker could be ready by then, want for example ",
               FormatDuration(kStartTimeoutDefault)));
  }
  if (job.entry_timeout == Duration::zero()) {
    return InvalidArgumentError(
        StrCat("--entry-timeout 0: no worker could enter a generation, want for example ",
               FormatDuration(kEntryTimeoutDefault)));
  }
  return OkStatus();
}

}  // namespace

Status CheckJob(const JobSpec& job) {
  if (job.job_id.empty() || job.job_id.size() > kJobIdBytesMax) {
    return InvalidArgumentError(StrCat("--job-id '", job.job_id, "': want 1 to ", kJobIdBytesMax,
                                       " bytes, have ", job.job_id.size()));
  }
  RETURN_IF_ERROR(CheckCounts(job));
  RETURN_IF_ERROR(CheckHosts(job));
  return CheckTimes(job);
}

}  // namespace elastic::internal
