#include "launcher/cli/run_job.h"

#include <unistd.h>

#include "launcher/cli/console.h"
#include "launcher/cli/job_end.h"
#include "launcher/cli/job_folder.h"
#include "launcher/cli/job_loop.h"
#include "launcher/cli/job_server.h"
#include "launcher/cli/random_numbers.h"
#include "launcher/cli/refuse_to_start.h"
#include "launcher/start/local_address.h"
#include "rendezvous/base/sched_slice.h"
#include "rendezvous/core/host_list.h"

namespace elastic::internal {

namespace {

std::vector<AgentBootstrap> MakeBootstraps(const RunOptions& options, const JobSpec& job,
                                           const std::string& server, const std::string& folder) {
  const uint64_t nonce = RandomNumber();
  std::vector<AgentBootstrap> agents;
  for (const HostSpec& host : job.hosts) {
    AgentBootstrap& agent = agents.emplace_back();
    agent.job_id = job.job_id;
    agent.job_nonce = nonce;
    agent.host = host.name;
    agent.listen_address = LocalDataAddress(host.name).value();
    agent.slots = host.slots;
    agent.server = server;
    agent.folder = folder;
    agent.command = options.command;
    agent.grace_period = options.grace_period;
    agent.orphan_limit = job.orphan_limit;
    // What an agent does is told by the server's notes; its own lines are for looking closer.
    agent.log_level = options.log_level == Severity::kInfo ? Severity::kWarning : options.log_level;
  }
  return agents;
}

// Of HOST:PORT or unix:PATH.
bool IsLocalOnly(const std::string& address) {
  if (address.starts_with("unix:")) {
    return true;
  }
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  return LocalDataAddress(host).ok();
}

void SayStart(Console& console, const RunOptions& options, const JobSpec& job,
              const std::string& status_address) {
  console.Say(
      Severity::kInfo,
      StrCat("job ", job.job_id, ": ", job.np, job.np == 1 ? " worker" : " workers", " (at least ",
             job.min_np, job.max_np > job.np ? StrCat(", at most ", job.max_np) : std::string(),
             ") of ", options.command.front(), " on ", FormatHostList(job.hosts)));
  console.Say(Severity::kInfo, StrCat("status: elastic-ctl status --address ", status_address,
                                      "; the job ends with this process, pid ", getpid()));
  if (options.rendezvous.empty() && !IsLocalOnly(status_address)) {
    console.Say(Severity::kWarning,
                StrCat("--status-address ", options.status_address,
                       ": whoever can reach this machine can read the job's status"));
  }
}

std::string FinalLine(const JobEnd::Result& result, const Held& newest) {
  const std::string_view what = result.exit_code == 0 ? "finished" : "ended";
  // A reason that only repeats the word is left out.
  const std::string why =
      result.reason.empty() || result.reason == what ? "" : ": " + result.reason;
  const std::string state = newest.valid() ? StrCat("; last commit: step ", newest.step) : "";
  return StrCat("job ", what, why, state, " (exit code ", result.exit_code, ")");
}

}  // namespace

int RunJob(const RunOptions& options, const JobSpec& job, const std::string& agent_program,
           JobSignals& signals) {
  auto folder = JobFolder::Make();
  if (!folder.ok()) {
    return RefuseToStart(folder.status());
  }
  Console console(options.log_level);
  // Inherited by gRPC's threads and by the agents, all of which are on the recovery path.
  if (const Status slice = RequestShortSlice(SliceInheritance::kInherited); !slice.ok()) {
    LogDebug("no short scheduler slice: ", slice.message());
  }
  JobEnd end;
  auto server = JobServer::Start(
      options, job, folder->path(),
      {.note = [&](Severity severity, const std::string& text) { console.Say(severity, text); },
       .ended =
           [&](const JobEnd::Result& result) {
             end.Set(result.exit_code, result.reason, result.workers_run);
           }});
  if (!server.ok()) {
    return RefuseToStart(server.status());
  }
  std::vector<AgentBootstrap> agents =
      MakeBootstraps(options, job, (*server)->agent_target(), folder->path());
  for (const AgentBootstrap& agent : agents) {
    if (const Status size = agent.CheckSize(); !size.ok()) {
      return RefuseToStart(size);
    }
  }
  SayStart(console, options, job, (*server)->status_address());

  JobLoop loop({.agent_program = agent_program,
                .agents = std::move(agents),
                .grace_period = options.grace_period,
                .post = [&](Event event) { (*server)->Post(std::move(event)); }},
               signals, end, console);
  const JobEnd::Result result = loop.Run();
  const Held newest = (*server)->Newest();
  (*server)->Shutdown();
  folder->Remove();
  const bool failed = result.exit_code != 0 && result.exit_code < kExitBySignal;
  console.Say(failed ? Severity::kError : Severity::kInfo, FinalLine(result, newest));
  console.Finish(signals, result.exit_code);
  return result.exit_code;
}

}  // namespace elastic::internal
