#include "launcher/cli/run_options.h"

#include "launcher/start/local_address.h"
#include "rendezvous/core/host_list.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kExample = "elastic-run -np 4 ./train";

StatusOr<std::vector<HostSpec>> HostsOf(const RunOptions& options) {
  if (options.hosts.empty()) {
    return std::vector<HostSpec>{{"localhost", *options.np}};
  }
  ASSIGN_OR_RETURN(auto hosts, ParseHostList(options.hosts));
  for (const HostSpec& host : hosts) {
    const auto address = LocalDataAddress(host.name);
    if (!address.ok()) {
      return address.status();
    }
  }
  return hosts;
}

}  // namespace

StatusOr<JobSpec> MakeJobSpec(const RunOptions& options, std::string job_id) {
  if (!options.np) {
    return InvalidArgumentError(
        StrCat("-np is missing: say how many workers to run, for example ", kExample));
  }
  JobSpec job;
  job.job_id = std::move(job_id);
  ASSIGN_OR_RETURN(job.hosts, HostsOf(options));
  job.np = *options.np;
  job.min_np = options.min_np.value_or(job.np);
  job.max_np = job.np;
  job.heartbeat_timeout = options.heartbeat_timeout;
  job.elastic_timeout = options.elastic_timeout;
  job.entry_timeout = options.entry_timeout;
  job.grace_period = options.grace_period;
  RETURN_IF_ERROR(CheckJob(job));
  if (options.command.empty()) {
    return InvalidArgumentError(
        StrCat("no command to run: put the program after the flags, for example ", kExample));
  }
  return job;
}

}  // namespace elastic::internal
