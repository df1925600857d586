// elastic-agent: one per host, started by elastic-run (or by hand for tests) with its bootstrap on
// standard input.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "launcher/agent/agent_driver.h"
#include "launcher/agent/agent_limits.h"
#include "launcher/agent/descriptor_limit.h"
#include "launcher/base/process_tree.h"
#include "rendezvous/base/sched_slice.h"
#include "rendezvous/client/agent_link.h"

namespace elastic::internal {

namespace {

int Fail(int exit_code, const Status& status) {
  std::fprintf(stderr, "elastic-agent: %s\n", status.message().c_str());
  return exit_code;
}

StatusOr<AgentBootstrap> ReadBootstrap() {
  std::string line;
  char buffer[4096];
  while (line.size() <= kBootstrapBytesMax) {
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) {
      continue;
    }
    if (bytes <= 0) {
      break;
    }
    line.append(buffer, static_cast<size_t>(bytes));
    const size_t end = line.find('\n');
    if (end != std::string::npos) {
      return AgentBootstrap::FromJson(std::string_view(line).substr(0, end));
    }
  }
  if (line.size() > kBootstrapBytesMax) {
    return ResourceExhaustedError(StrCat("the bootstrap line on standard input is longer than ",
                                         kBootstrapBytesMax, " bytes (kBootstrapBytesMax)"));
  }
  return InvalidArgumentError(StrCat("no bootstrap line on standard input (read ", line.size(),
                                     " bytes): elastic-agent is started by elastic-run"));
}

// Before any thread exists, so that all of them inherit it. The terminal's Ctrl-C is the launcher's
// affair, but an agent that is told to end by hand ends in order.
UniqueFd BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTSTP, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&ending, number);
  }
  sigset_t blocked = ending;
  sigaddset(&blocked, SIGCHLD);  // for WaitForChild
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  return UniqueFd(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
}

void LogThrough(OutputPump& output, const AgentBootstrap& bootstrap) {
  SetLogSink([&output](Severity severity, std::string_view line) { output.Say(severity, line); },
             bootstrap.log_level);
}

int RunAgent(const AgentBootstrap& bootstrap, const Traces& traces, GuardianClient& guardian,
             int signals_fd) {
  OutputPump output(STDOUT_FILENO, STDERR_FILENO, bootstrap.host);
  LogThrough(output, bootstrap);
  Inbox inbox;
  std::unique_ptr<AgentLink> link;
  int exit_code = kAgentExitSetup;
  {
    auto driver = AgentDriver::Create(
        {.bootstrap = bootstrap,
         .traces = traces,
         .guardian = guardian,
         .inbox = inbox,
         .output = output,
         .bootstrap_fd = STDIN_FILENO,
         .signals_fd = signals_fd,
         .send_report = [&link](AgentReport report) { link->Send(std::move(report)); }});
    if (driver.ok()) {
      link = std::make_unique<AgentLink>(
          AgentLink::Options{.server = bootstrap.server,
                             .host = bootstrap.host,
                             .slots = bootstrap.slots,
                             .job_id = bootstrap.job_id,
                             .replaces = bootstrap.replaces},
          AgentLink::Callbacks{
              .registered =
                  [&](AgentIncarnation agent, ServerIncarnation server) {
                    inbox.Post(LinkRegistered{agent, server});
                  },
              .directive =
                  [&](Directive directive) { inbox.Post(LinkDirective{std::move(directive)}); },
              .lost = [&](Status reason) { inbox.Post(LinkLost{std::move(reason)}); },
              .refused = [&](Status reason) { inbox.Post(LinkRefused{std::move(reason)}); }});
      exit_code = (*driver)->Run();
      link.reset();
    } else {
      LogError(driver.error().message());
    }
  }
  // Without a guardian workers may still live, and their output would not end.
  output.Finish(exit_code == kAgentExitGuardianLost ? Duration(0) : kOutputDrainLimit);
  SetLogSink(nullptr, Severity::kError);
  return exit_code;
}

int Main(int argument_count) {
  if (argument_count > 1 || isatty(STDIN_FILENO) != 0) {
    return Fail(kAgentExitUsage,
                FailedPreconditionError("this program takes no arguments and is not for people: "
                                        "elastic-run starts it on each host of a job"));
  }
  auto bootstrap = ReadBootstrap();
  if (!bootstrap.ok()) {
    return Fail(kAgentExitUsage, bootstrap.status());
  }
  auto traces = TracesOf(*bootstrap);
  if (!traces.ok()) {
    return Fail(kAgentExitUsage, traces.status());
  }
  // Should the launcher be killed, the folder is still somebody's (launcher/cli/job_folder.h).
  const UniqueFd folder(open(traces->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  flock(folder.get(), LOCK_SH | LOCK_NB);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const UniqueFd signals = BlockSignals();
  // First of all: no thread and no gRPC object exists yet, and the slice is not the guardian's.
  auto guardian = GuardianClient::Fork(bootstrap->job_id, *traces);
  if (!guardian.ok()) {
    return Fail(kAgentExitSetup, guardian.status());
  }
  RaiseDescriptorLimit();
  static_cast<void>(RequestShortSlice(SliceInheritance::kInherited));
  const int exit_code = RunAgent(*bootstrap, *traces, **guardian, signals.get());
  if (exit_code == kAgentExitGuardianLost) {
    (*guardian)->GiveUp();
  }
  guardian->reset();
  static ProcessList scratch;  // too large for the stack
  KillAllDescendants(scratch);
  RemoveTraces(*traces, LauncherIsGone(STDIN_FILENO));
  return exit_code;
}

}  // namespace

}  // namespace elastic::internal

int main(int argc, char**) { return elastic::internal::Main(argc); }
