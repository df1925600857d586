// Main of elastic-rendezvous: a standing server that takes jobs from elastic-run, or the server of
// one job for agents that somebody else starts. elastic-run has the same server inside.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/sched_slice.h"
#include "rendezvous/client/log_spdlog.h"
#include "rendezvous/server/rendezvous_flags.h"
#include "rendezvous/server/server.h"

namespace elastic::internal {
namespace {

// What the driver's thread tells the main thread, which waits for signals.
class End {
 public:
  void Set(int exit_code, const std::string& reason) {
    {
      MutexLock lock(mutex_);
      exit_code_ = exit_code;
    }
    Log(exit_code == 0 ? Severity::kInfo : Severity::kError, "the job is over: ", reason);
    kill(getpid(), SIGUSR1);
  }
  std::optional<int> Get() {
    MutexLock lock(mutex_);
    return exit_code_;
  }

 private:
  Mutex mutex_;
  std::optional<int> exit_code_ GUARDED_BY(mutex_);
};

// The first signal stops the job with grace, a second one at once, a third one leaves it.
int WaitForEnd(RendezvousServer& server, const sigset_t& signals, End& end) {
  StopMode next = StopMode::kGraceful;
  while (true) {
    int number = 0;
    sigwait(&signals, &number);
    if (const std::optional<int> exit_code = end.Get()) {
      return *exit_code;
    }
    if (number == SIGUSR1) {
      continue;
    }
    const int exit_code = kExitBySignal + number;
    if (next == StopMode::kNone) {
      return exit_code;
    }
    const std::string name = number == SIGINT ? "Ctrl-C (SIGINT)" : "SIGTERM";
    server.Post(StopRequested{.mode = next, .reason = name, .exit_code = exit_code});
    next = next == StopMode::kGraceful ? StopMode::kImmediate : StopMode::kNone;
  }
}

int RefuseToServe(const Status& reason) {
  std::fprintf(stderr, "elastic-rendezvous: %s\n", reason.message().c_str());
  return static_cast<int>(JobExit::kUsage);
}

// Whoever ends it may start it again: a job that trains goes on meanwhile.
int Stand(const RendezvousFlags& flags, const sigset_t& signals) {
  const auto server = RendezvousServer::StartStanding(flags.agent_address, flags.status_address);
  if (!server.ok()) {
    return RefuseToServe(server.status());
  }
  LogInfo("elastic-run --rendezvous ", (*server)->agent_target(), " submits a job");
  LogInfo("status: elastic-ctl status --address ", (*server)->status_address());
  int number = 0;
  sigwait(&signals, &number);
  const JobState state = (*server)->View().state;
  const bool trains = state != JobState::kFinished && state != JobState::kFailed;
  LogInfo(number == SIGINT ? "Ctrl-C (SIGINT)" : "SIGTERM", ": this server ends",
          trains && !(*server)->View().job_id.empty()
              ? "; its job goes on, and ends unless a server is there within its --orphan-limit"
              : "");
  (*server)->Shutdown();
  return 0;
}

int Serve(const RendezvousFlags& flags) {
  // Blocked before any thread exists, so that all threads leave them to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  InstallSpdlogSink(flags.log_level, "elastic-rendezvous");
  if (const Status slice = RequestShortSlice(SliceInheritance::kInherited); !slice.ok()) {
    LogDebug("no short scheduler slice: ", slice.message());
  }
  if (flags.standing) {
    return Stand(flags, signals);
  }
  End end;
  const std::unique_ptr<Journal> journal = MakeMemoryJournal();
  StatusOr<std::unique_ptr<RendezvousServer>> server = RendezvousServer::Start(
      {.job = flags.job,
       .agent_address = flags.agent_address,
       .status_address = flags.status_address},
      *journal,
      {.note = [](Severity severity, const std::string& text) { Log(severity, text); },
       .ended = [&](int exit_code, const std::string& reason) { end.Set(exit_code, reason); }});
  if (!server.ok()) {
    return RefuseToServe(server.status());
  }
  LogInfo("job ", flags.job.job_id, ": agents connect to ", (*server)->agent_target());
  LogInfo("status: elastic-ctl status --address ", (*server)->status_address());
  const int exit_code = WaitForEnd(**server, signals, end);
  (*server)->Shutdown();
  return exit_code;
}

}  // namespace
}  // namespace elastic::internal

int main(int argc, char** argv) {
  using namespace elastic::internal;
  const ParsedFlags parsed = ParseRendezvousFlags(argc, argv);
  return parsed.flags.has_value() ? Serve(*parsed.flags) : parsed.exit_code;
}
