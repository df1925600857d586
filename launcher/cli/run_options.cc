#include "launcher/cli/run_options.h"

#include "launcher/start/local_address.h"
#include "rendezvous/core/host_list.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kExample = "elastic-run -np 4 ./train";

Status CheckCounts(const RunOptions& options) {
  if (!options.np) {
    return InvalidArgumentError(
        StrCat("-np is missing: say how many workers to run, for example ", kExample));
  }
  if (*options.np < 1) {
    return InvalidArgumentError(
        StrCat("-np ", *options.np, ": want at least 1 worker, for example ", kExample));
  }
  if (*options.np > kMembersMax) {
    return ResourceExhaustedError(
        StrCat("-np ", *options.np, ": a job can have at most ", kMembersMax, " workers"));
  }
  const int min_np = options.min_np.value_or(*options.np);
  if (min_np < 1) {
    return InvalidArgumentError(
        StrCat("--min-np ", min_np, ": want at least 1, the fewest workers that may train"));
  }
  if (min_np > *options.np) {
    return InvalidArgumentError(StrCat("--min-np ", min_np, " is more than -np ", *options.np,
                                       ": lower --min-np or raise -np"));
  }
  return OkStatus();
}

Status CheckTimes(const RunOptions& options) {
  if (options.heartbeat_timeout < kHeartbeatTimeoutMin) {
    return InvalidArgumentError(StrCat(
        "--heartbeat-timeout ", FormatDuration(options.heartbeat_timeout), ": want at least ",
        FormatDuration(kHeartbeatTimeoutMin), ", two heartbeats of an agent"));
  }
  if (options.entry_timeout == Duration::zero()) {
    return InvalidArgumentError(
        StrCat("--entry-timeout 0: no worker could enter a generation, want for example ",
               FormatDuration(kEntryTimeoutDefault)));
  }
  return OkStatus();
}

StatusOr<std::vector<HostSpec>> HostsOf(const RunOptions& options) {
  if (options.hosts.empty()) {
    if (*options.np > kSlotsPerHostMax) {
      return ResourceExhaustedError(StrCat("-np ", *options.np, ": one host can have at most ",
                                           kSlotsPerHostMax,
                                           " slots, spread the workers over hosts with -H"));
    }
    return std::vector<HostSpec>{{"localhost", *options.np}};
  }
  ASSIGN_OR_RETURN(auto hosts, ParseHostList(options.hosts));
  for (const HostSpec& host : hosts) {
    const auto address = LocalDataAddress(host.name);
    if (!address.ok()) {
      return address.status();
    }
  }
  const int slots = CountSlots(hosts);
  if (slots < *options.np) {
    return FailedPreconditionError(StrCat("need ", *options.np, " slots (-np), have ", slots,
                                          " on ", FormatHostList(hosts),
                                          ": give more slots with -H or lower -np"));
  }
  return hosts;
}

}  // namespace

StatusOr<JobSpec> MakeJobSpec(const RunOptions& options) {
  RETURN_IF_ERROR(CheckCounts(options));
  RETURN_IF_ERROR(CheckTimes(options));
  JobSpec job;
  ASSIGN_OR_RETURN(job.hosts, HostsOf(options));
  job.np = *options.np;
  job.min_np = options.min_np.value_or(job.np);
  job.max_np = job.np;
  job.heartbeat_timeout = options.heartbeat_timeout;
  job.elastic_timeout = options.elastic_timeout;
  job.entry_timeout = options.entry_timeout;
  job.grace_period = options.grace_period;
  if (options.command.empty()) {
    return InvalidArgumentError(
        StrCat("no command to run: put the program after the flags, for example ", kExample));
  }
  return job;
}

}  // namespace elastic::internal
