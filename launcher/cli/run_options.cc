#include "launcher/cli/run_options.h"

#include <map>

#include "launcher/start/local_address.h"
#include "rendezvous/core/host_list.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kExample = "elastic-run -np 4 ./train";

Status MissingCount(const RunOptions& options) {
  for (size_t i = 1; i < options.command.size(); ++i) {
    const std::string& word = options.command[i];
    if (word == "-np" || word.starts_with("-np=") || word.starts_with("--num-proc")) {
      return InvalidArgumentError(
          StrCat("-np is missing: the '", word, "' after ", options.command.front(),
                 " is an argument of that program, flags of elastic-run come before it, as in ",
                 kExample));
    }
  }
  return InvalidArgumentError(
      StrCat("-np is missing: say how many workers to run, for example ", kExample));
}

StatusOr<std::vector<HostSpec>> HostsOf(const RunOptions& options) {
  if (options.hosts.empty()) {
    return std::vector<HostSpec>{{"localhost", options.max_np.value_or(*options.np)}};
  }
  ASSIGN_OR_RETURN(auto hosts, ParseHostList(options.hosts));
  std::map<std::string, std::string> names;  // of each address
  for (const HostSpec& host : hosts) {
    ASSIGN_OR_RETURN(const std::string address, LocalDataAddress(host.name));
    const auto [first, added] = names.emplace(address, host.name);
    if (!added) {
      return InvalidArgumentError(StrCat("-H has '", first->second, "' and '", host.name,
                                         "', which are one address: add their slots together"));
    }
  }
  return hosts;
}

}  // namespace

StatusOr<JobSpec> MakeJobSpec(const RunOptions& options, std::string job_id) {
  if (!options.np) {
    return MissingCount(options);
  }
  JobSpec job;
  job.job_id = std::move(job_id);
  ASSIGN_OR_RETURN(job.hosts, HostsOf(options));
  job.np = *options.np;
  job.min_np = options.min_np.value_or(job.np);
  job.max_np = options.max_np.value_or(job.np);
  job.no_progress_limit = options.no_progress_limit;
  job.allow_restart_from_zero = options.allow_restart_from_zero;
  job.start_timeout = options.start_timeout;
  job.heartbeat_timeout = options.heartbeat_timeout;
  job.elastic_timeout = options.elastic_timeout;
  job.entry_timeout = options.entry_timeout;
  job.orphan_limit = options.orphan_limit != Duration::zero() ? options.orphan_limit
                     : options.rendezvous.empty()             ? kOrphanLimitInProcess
                                                              : kOrphanLimitStanding;
  job.grace_period = options.grace_period;
  if (!options.rendezvous.empty() && options.status_address != RunOptions{}.status_address) {
    return InvalidArgumentError(
        "--status-address is the server's: give it to the elastic-rendezvous of --rendezvous");
  }
  RETURN_IF_ERROR(CheckJob(job));
  if (options.command.empty()) {
    return InvalidArgumentError(
        StrCat("no command to run: put the program after the flags, for example ", kExample));
  }
  return job;
}

}  // namespace elastic::internal
