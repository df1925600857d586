#include "rendezvous/server/rendezvous_flags.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/severity_names.h"
#include "rendezvous/core/host_list.h"

namespace elastic::internal {

namespace {

constexpr int kExitUsage = static_cast<int>(JobExit::kUsage);

// As they stand on the command line.
struct Words {
  std::string job_id = "job";
  std::optional<int> np;
  std::optional<int> min_np;
  std::optional<int> max_np;
  std::string hosts;
  std::string listen = "127.0.0.1";
  int port = 0;
  std::string status_address = "127.0.0.1:0";
  int no_progress_limit = kNoProgressLimitDefault;
  bool allow_restart_from_zero = false;
  std::string start_timeout = FormatDuration(kStartTimeoutDefault);
  std::string heartbeat_timeout = FormatDuration(kHeartbeatTimeoutDefault);
  std::string elastic_timeout = FormatDuration(kElasticTimeoutDefault);
  std::string entry_timeout = FormatDuration(kEntryTimeoutDefault);
  std::string orphan_limit = "10m";
  std::string log_level = "info";
};

Status FillTimes(const Words& words, JobSpec& job) {
  const std::tuple<const char*, const std::string&, Duration&> times[] = {
      {"--start-timeout", words.start_timeout, job.start_timeout},
      {"--heartbeat-timeout", words.heartbeat_timeout, job.heartbeat_timeout},
      {"--elastic-timeout", words.elastic_timeout, job.elastic_timeout},
      {"--entry-timeout", words.entry_timeout, job.entry_timeout},
      {"--orphan-limit", words.orphan_limit, job.orphan_limit}};
  for (const auto& [flag, text, target] : times) {
    const StatusOr<Duration> time = ParseDuration(text);
    if (!time.ok()) {
      return InvalidArgumentError(std::string(flag) + ": " + time.status().message());
    }
    target = *time;
  }
  return OkStatus();
}

StatusOr<Severity> ParseLevel(const std::string& text) {
  const std::optional<Severity> level = ParseSeverity(text);
  if (!level) {
    return InvalidArgumentError("--log-level '" + text +
                                "' is none of debug, info, warning, error");
  }
  return *level;
}

StatusOr<RendezvousFlags> Weigh(const Words& words) {
  RendezvousFlags flags;
  JobSpec& job = flags.job;
  job.job_id = words.job_id;
  job.np = words.np.value_or(0);
  job.min_np = words.min_np.value_or(job.np);
  job.max_np = words.max_np.value_or(job.np);
  job.no_progress_limit = words.no_progress_limit;
  job.allow_restart_from_zero = words.allow_restart_from_zero;
  flags.standing = !words.np && words.hosts.empty();
  RETURN_IF_ERROR(FillTimes(words, job));
  if (!flags.standing) {
    if (!words.np || words.hosts.empty()) {
      return InvalidArgumentError(StrCat(
          !words.np ? "--np" : "-H", " is missing: a job of this server's own needs --np and ",
          "-H; without both it stands and waits for jobs of elastic-run --rendezvous"));
    }
    ASSIGN_OR_RETURN(job.hosts, ParseHostList(words.hosts));
    RETURN_IF_ERROR(CheckJob(job));
  }
  ASSIGN_OR_RETURN(flags.log_level, ParseLevel(words.log_level));
  flags.agent_address = words.listen.starts_with("unix:")
                            ? words.listen
                            : words.listen + ":" + std::to_string(words.port);
  flags.status_address = words.status_address;
  return flags;
}

void AddOptions(CLI::App& app, Words& words) {
  app.add_option("--job-id", words.job_id, "agents must have been started for this job")
      ->capture_default_str();
  app.add_option("-n,--np", words.np, "workers that the job begins with (-np is taken, too)");
  app.add_option("--min-np", words.min_np, "fewest that may train; default: same as --np");
  app.add_option("--max-np", words.max_np, "most that may train; default: same as --np");
  app.add_option("-H,--hosts", words.hosts, "HOST:SLOTS,...: hosts whose agents may register");
  app.add_option("--listen", words.listen,
                 "address for agents, or unix:PATH in a folder of mode 0700. Agents are not "
                 "authenticated: whoever reaches the address can take part in the job")
      ->capture_default_str();
  app.add_option("--port", words.port, "port for agents; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--status-address", words.status_address,
                 "HOST:PORT of the read-only status service")
      ->capture_default_str();
  app.add_option("--no-progress-limit", words.no_progress_limit,
                 "generations in a row that may fail without a committed step; 0: any number")
      ->capture_default_str();
  app.add_flag("--allow-restart-from-zero", words.allow_restart_from_zero,
               "begin anew when no copy of the committed state is left");
  app.add_option("--start-timeout", words.start_timeout,
                 "how long to wait for --np workers before the job begins with --min-np")
      ->capture_default_str();
  app.add_option("--heartbeat-timeout", words.heartbeat_timeout,
                 "a host is lost after this silence")
      ->capture_default_str();
  app.add_option("--elastic-timeout", words.elastic_timeout,
                 "how long to wait for --min-np workers")
      ->capture_default_str();
  app.add_option("--entry-timeout", words.entry_timeout,
                 "how long a worker may take to enter a generation")
      ->capture_default_str();
  app.add_option("--orphan-limit", words.orphan_limit,
                 "how long agents keep workers without a server")
      ->capture_default_str();
  app.add_option("--log-level", words.log_level, "debug, info, warning or error")
      ->capture_default_str();
}

// A standing server would take no notice of them.
Status CheckNoJobFlags(const CLI::App& app) {
  for (const char* flag : {"--job-id", "--min-np", "--max-np", "--no-progress-limit",
                           "--allow-restart-from-zero", "--start-timeout", "--heartbeat-timeout",
                           "--elastic-timeout", "--entry-timeout", "--orphan-limit"}) {
    if (app.count(flag) > 0) {
      return InvalidArgumentError(StrCat(
          flag, " is a job's: give it to elastic-run --rendezvous, or give this server a job ",
          "of its own with --np and -H"));
    }
  }
  return OkStatus();
}

}  // namespace

ParsedFlags ParseRendezvousFlags(int argc, const char* const* argv) {
  CLI::App app(
      "Rendezvous server of elastic jobs. It stands and takes one job at a time from elastic-run\n"
      "--rendezvous, which brings the job's flags; or, with --np and -H, it has one job, "
      "for\nagents that somebody else starts.",
      "elastic-rendezvous");
  Words words;
  AddOptions(app, words);
  app.set_version_flag("--version", "elastic-rendezvous " ELASTIC_VERSION);
  app.footer(
      "Times take a unit: 300ms, 3s, 10m. Exit codes as those of elastic-run.\n"
      "It may be ended and started again at the same address while a job of elastic-run trains.\n"
      "Examples: elastic-rendezvous --port 4000\n"
      "          elastic-rendezvous --np 4 --min-np 2 -H a:2,b:2 --port 4000");
  // CLI11 reads `-np` as `-n p`. It takes its arguments from the back.
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    arguments.emplace_back(std::string(argv[i]) == "-np" ? "--np" : argv[i]);
  }
  try {
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    app.exit(success);
    if (!std::cout.flush().good()) {
      std::fprintf(stderr, "elastic-rendezvous: %s\n",
                   ErrnoError(errno, "write to standard output").message().c_str());
      return {.exit_code = kExitUsage};
    }
    return {.exit_code = 0};
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "elastic-rendezvous: %s (--help tells more)\n", error.what());
    return {.exit_code = kExitUsage};
  }
  StatusOr<RendezvousFlags> flags = Weigh(words);
  if (flags.ok() && flags->standing) {
    if (const Status own = CheckNoJobFlags(app); !own.ok()) {
      flags = own;
    }
  }
  if (!flags.ok()) {
    std::fprintf(stderr, "elastic-rendezvous: %s\n", flags.status().message().c_str());
    return {.exit_code = kExitUsage};
  }
  return {.flags = std::move(*flags)};
}

}  // namespace elastic::internal
