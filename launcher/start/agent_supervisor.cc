#include "launcher/start/agent_supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "launcher/base/process_tree.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

// Restarts are delayed, so an agent that died so many deaths ago has been dead for minutes.
constexpr size_t kFormerInputsKept = 8;
// An agent that exits 0 was told to: the job is ending, and the word of it comes within moments.
constexpr Duration kOrderlyEndPause = kRestartDelayFirst;

}  // namespace

AgentSupervisor::AgentSupervisor(Options options, Callbacks callbacks, OutputRelay& output)
    : program_(std::move(options.program)), callbacks_(std::move(callbacks)), output_(output) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (AgentBootstrap& bootstrap : options.agents) {
    Slot& slot = slots_.emplace_back();
    slot.bootstrap = std::move(bootstrap);
    slot.start_at = Instant{};  // due at once
  }
}

AgentSupervisor::~AgentSupervisor() {
  StopRestarting();
  Kill();
  const Instant limit = Now() + kKilledAgentLimit;
  for (Slot& slot : slots_) {
    if (slot.agent.pid != 0) {
      pollfd ended{slot.agent.pidfd.get(), POLLIN, 0};
      poll(&ended, 1, PollMilliseconds(limit - Now()));
      ReapAgent(slot.agent);
    }
  }
  ReapOrphans(true);
}

void AgentSupervisor::StartDue(Instant now) {
  for (Slot& slot : slots_) {
    if (slot.start_at && *slot.start_at <= now) {
      Start(slot, now);
    }
  }
}

void AgentSupervisor::Start(Slot& slot, Instant now) {
  slot.start_at.reset();
  slot.started = now;
  auto agent = StartLocalAgent(program_, slot.bootstrap);
  if (!agent.ok()) {
    HandleDeath(slot, "could not be started: " + agent.status().message(), now);
    return;
  }
  slot.agent = std::move(*agent);
  slot.bootstrap.replaces = true;  // the next one
  output_.AddSource(std::move(slot.agent.output), OutputRelay::Target::kOutput);
  output_.AddSource(std::move(slot.agent.errors), OutputRelay::Target::kErrors);
}

void AgentSupervisor::HandleDeath(Slot& slot, const std::string& what, Instant now) {
  if (!restarting_) {
    return;
  }
  const Duration delay = slot.delay.AfterDeath(slot.started, now);
  slot.start_at = now + delay;
  callbacks_.trouble(
      slot.bootstrap.host,
      StrCat("agent of host ", slot.bootstrap.host, " ", what, ", started again ",
             delay == Duration::zero() ? std::string("at once") : "in " + FormatDuration(delay)));
}

std::optional<Instant> AgentSupervisor::NextDeadline() const {
  std::optional<Instant> next;
  for (const Slot& slot : slots_) {
    if (slot.start_at && (!next || *slot.start_at < *next)) {
      next = slot.start_at;
    }
  }
  return next;
}

void AgentSupervisor::AddPollEntries(std::vector<pollfd>& entries) const {
  for (const Slot& slot : slots_) {
    if (slot.agent.pid != 0) {
      if (slot.agent.pidfd.valid()) {
        entries.push_back({slot.agent.pidfd.get(), POLLIN, 0});
      }
      if (!slot.agent.unwritten.empty()) {
        entries.push_back({slot.agent.input.get(), POLLOUT, 0});
      }
    }
  }
}

void AgentSupervisor::HandleEvents(Instant now) {
  bool agent_died = false;
  for (Slot& slot : slots_) {
    if (slot.agent.pid == 0) {
      continue;
    }
    ContinueBootstrap(slot.agent);
    if (const std::optional<ExitStatus> status = ReapAgent(slot.agent)) {
      slot.former_inputs.push_back(std::move(slot.agent.input));
      if (slot.former_inputs.size() > kFormerInputsKept) {
        slot.former_inputs.pop_front();
      }
      slot.agent = LocalAgent{};
      agent_died = true;
      if (status->ok() && restarting_) {
        slot.start_at = now + kOrderlyEndPause;
        continue;
      }
      lost_agent_ = lost_agent_ || restarting_;
      HandleDeath(slot, StrCat("ended with ", ToString(*status)), now);
    }
  }
  ReapOrphans(agent_died);
}

// When an agent and its guardian die in one moment nobody of theirs is left to kill what their
// workers started in sessions of its own. Such processes become our children, one by one as their
// parents die, and are told by the job's id in their environment, which a guardian does not have.
void AgentSupervisor::KillStrays() const {
  const std::string mark = "ELASTIC_JOB_ID=" + slots_.front().bootstrap.job_id;
  const auto found = std::make_unique<ProcessList>();
  found->AddChildrenOf(getpid());
  for (int i = 0; i < found->size(); ++i) {
    if (HasEnvironment((*found)[i].pid, mark)) {
      SignalFound((*found)[i], SIGKILL);
    }
  }
}

void AgentSupervisor::ReapOrphans(bool agent_died) {
  bool reaped = false;
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const bool agent =
        std::ranges::any_of(slots_, [pid](const Slot& slot) { return slot.agent.pid == pid; });
    if (agent) {
      break;  // its pidfd is readable now: HandleEvents comes again
    }
    reaped = waitpid(pid, nullptr, WNOHANG) == pid || reaped;
    info = {};
  }
  if (reaped || agent_died) {
    KillStrays();
  }
}

bool AgentSupervisor::HasOrphans() const {
  siginfo_t info{};
  return lost_agent_ && running() == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void AgentSupervisor::StopRestarting() {
  restarting_ = false;
  for (Slot& slot : slots_) {
    slot.start_at.reset();
  }
}

void AgentSupervisor::CloseInputs() {
  for (Slot& slot : slots_) {
    slot.agent.unwritten.clear();
    slot.agent.input.Reset();
    slot.former_inputs.clear();
  }
}

void AgentSupervisor::Kill() {
  for (const Slot& slot : slots_) {
    if (slot.agent.pid != 0) {
      lost_agent_ = true;
      kill(slot.agent.pid, SIGKILL);
    }
  }
}

int AgentSupervisor::running() const {
  return static_cast<int>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.agent.pid != 0; }));
}

std::vector<std::string> AgentSupervisor::LeaveBehind() {
  std::vector<std::string> names;
  for (Slot& slot : slots_) {
    if (slot.agent.pid != 0) {
      const auto stat = ReadProcessStat(slot.agent.pid);
      names.push_back(StrCat("agent of host ", slot.bootstrap.host, ", pid ", slot.agent.pid,
                             ", state ", stat ? stat->state : '?'));
      slot.agent = LocalAgent{};
    }
  }
  return names;
}

}  // namespace elastic::internal
