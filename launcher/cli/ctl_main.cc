// Main of elastic-ctl: looks at a running job from outside.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "launcher/cli/ctl_json.h"
#include "launcher/cli/ctl_table.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/tcp_address.h"
#include "rendezvous/client/status_client.h"

namespace elastic::internal {
namespace {

constexpr int kExitUnreachable = 1;

constexpr const char* kLegend =
    "What the table shows:\n"
    "  generation      one fixed membership; every change makes a new one\n"
    "  AGENT           in touch, silent for longer than --heartbeat-timeout, or none yet\n"
    "  LAST HEARD      time since the newest heartbeat of the host or the process\n"
    "  RANK            -: not a member: still starting, waiting to join, or dead\n"
    "  DOING           own code: outside of the library's calls; collective: in one, perhaps\n"
    "                  waiting for the others\n"
    "  HAS COMMITTED   newest committed state in this worker's memory\n"
    "  ALL TOLD        from the report of the change until all survivors were stopped\n"
    "  NEXT FORMED     from there until the next generation was decided\n"
    "  ALL IN          from there until all its members could train\n"
    "--json has more: incarnations, versions, digests.";

struct Options {
  std::string address;
  std::string time_limit = "3s";
  bool json = false;
};

int Refuse(const std::string& message) {
  std::fprintf(stderr, "elastic-ctl: %s\n", message.c_str());
  return static_cast<int>(JobExit::kUsage);
}

int Written(bool written) {
  return written ? 0 : Refuse("cannot write to standard output: " + std::string(strerror(errno)));
}

int ShowStatus(const Options& options) {
  if (options.address.empty()) {
    return Refuse("status needs --address HOST:PORT; elastic-run prints it in its second line");
  }
  if (!options.address.starts_with("unix:") && !HasTcpPort(options.address)) {
    return Refuse(
        "'" + options.address +
        "' is no address: --address wants HOST:PORT with a port up to 65535, or unix:PATH");
  }
  const StatusOr<Duration> time_limit = ParseDuration(options.time_limit);
  if (!time_limit.ok()) {
    return Refuse("--timeout: " + time_limit.status().message());
  }
  const StatusOr<JobView> view = GetStatus(options.address, *time_limit);
  if (!view.ok()) {
    std::fprintf(stderr,
                 "elastic-ctl: %s; is this the --address that elastic-run printed, and does it "
                 "still run?\n",
                 view.status().message().c_str());
    return kExitUnreachable;
  }
  const std::string text = options.json ? StatusJson(*view, Now()) : StatusTable(*view);
  std::fputs(text.c_str(), stdout);
  return Written(std::fflush(stdout) == 0);
}

int Main(int argc, char** argv) {
  CLI::App app("Looks at a running elastic-run job.", "elastic-ctl");
  app.set_version_flag("-V,--version", "elastic-ctl " ELASTIC_VERSION);
  app.require_subcommand(1);
  Options options;
  CLI::App* status = app.add_subcommand(
      "status", "Shows generation, hosts, ranks, what the job waits for and its last resets.");
  status->add_option("--address,address", options.address,
                     "HOST:PORT or unix:PATH of the job's status service, from elastic-run's "
                     "second line; --address may be left out");
  status->add_flag("--json", options.json, "JSON for scripts instead of a table");
  status->add_option("--timeout", options.time_limit, "how long to wait for an answer")
      ->capture_default_str();
  status->footer(kLegend);
  app.footer(
      "Exit codes: 0 shown, 1 no answer from the address, 2 wrong usage, or nowhere to print.\n"
      "Example: elastic-ctl status --address 127.0.0.1:40123");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);
    return Written(std::cout.flush().good());
  } catch (const CLI::RequiredError&) {
    return Refuse((argc > 1 ? "'" + std::string(argv[1]) + "' is no command" : "no command given") +
                  "; the one there is: elastic-ctl status --address HOST:PORT");
  } catch (const CLI::ParseError& error) {
    return Refuse(std::string(error.what()) + " (elastic-ctl --help tells more)");
  }
  return ShowStatus(options);
}

}  // namespace
}  // namespace elastic::internal

int main(int argc, char** argv) { return elastic::internal::Main(argc, argv); }
