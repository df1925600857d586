// Main of elastic-run: everything that can be wrong with the command line and the set-up is found
// here, before anything starts.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "launcher/cli/command_check.h"
#include "launcher/cli/help.h"
#include "launcher/cli/job_signals.h"
#include "launcher/cli/parse_arguments.h"
#include "launcher/cli/random_numbers.h"
#include "launcher/cli/refuse_to_start.h"
#include "launcher/cli/run_job.h"
#include "launcher/start/local_agent.h"

namespace elastic::internal {
namespace {

StatusOr<std::string> CheckSetUp(const RunOptions& options) {
  const char* path = std::getenv("PATH");
  const auto command = FindCommand(options.command.front(), path == nullptr ? "" : path);
  if (!command.ok()) {
    return command.status();
  }
  return FindAgentProgram();
}

int Main(const std::vector<std::string>& arguments) {
  const auto options = ParseArguments(arguments);
  if (!options.ok()) {
    return RefuseToStart(options.status());
  }
  if (options->help || options->version) {
    const std::string text = options->help ? HelpText() : VersionText() + "\n";
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
      return RefuseToStart(ErrnoError(errno, "write to standard output"));
    }
    return 0;
  }
  const auto job = MakeJobSpec(*options, "run-" + RandomHex());
  if (!job.ok()) {
    return RefuseToStart(job.status());
  }
  const auto agent_program = CheckSetUp(*options);
  if (!agent_program.ok()) {
    return RefuseToStart(agent_program.status());
  }
  JobSignals signals;
  return RunJob(*options, *job, *agent_program, signals);
}

}  // namespace
}  // namespace elastic::internal

int main(int argc, char** argv) {
  return elastic::internal::Main(std::vector<std::string>(argv + 1, argv + argc));
}
