#include "launcher/agent/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "launcher/agent/agent_limits.h"
#include "launcher/agent/descriptor_limit.h"
#include "launcher/agent/guardian_spawn.h"
#include "launcher/agent/pass_descriptors.h"
#include "launcher/base/process_tree.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

// One life of the guardian. What it will report of a worker is kept in the table's flags, so a full
// socket delays an event but loses none. Only that the table is full is said at once or never: an
// agent that reaches that has far more unread.
class Guardian {
 public:
  explicit Guardian(const GuardianOptions& options);
  [[noreturn]] void Run();

 private:
  void ReadCommands();
  void Spawn(const GuardianCommand& command, UniqueFd text);
  void ReadExecResult(GuardianWorker& worker);
  void Reap();
  void CheckDeadline(Instant now);
  void BeginKilling(GuardianWorker& worker, Instant now);
  // The guardian's children that are no workers, for the calls of SignalTree that follow.
  void FindOrphans();
  // Signals all processes of the worker; the number of those alive.
  int SignalTree(const GuardianWorker& worker, int signal);
  bool Owns(const GuardianWorker& worker, const FoundProcess& orphan) const;
  void KillingRound(Instant now);
  void SendEvents();
  bool SendEvent(GuardianWorker& worker, GuardianEventKind kind);
  bool Wait(Instant now);
  [[noreturn]] void End();
  GuardianWorker* Find(const local::WireIncarnation& incarnation);

  const GuardianOptions options_;
  UniqueFd agent_handle_;
  UniqueFd child_signals_;
  rlimit files_{};
  std::array<GuardianWorker, kGuardianWorkersMax> workers_;
  ProcessList orphans_;
  bool any_worker_ = false;  // lives, seen together with the orphans
  ProcessList scratch_;
  bool agent_gone_ = false;
  bool socket_full_ = false;
  bool any_killing_ = false;
};

Guardian::Guardian(const GuardianOptions& options)
    : options_(options),
      agent_handle_(static_cast<int>(syscall(SYS_pidfd_open, options.agent, 0))),
      files_(RaiseDescriptorLimit()) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A signal to the agent's process group must not reach the one who cleans up after the agent.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  child_signals_.Reset(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  agent_gone_ = !agent_handle_.valid() || getppid() != options.agent;
}

void Guardian::Run() {
  for (;;) {
    const Instant now = Now();
    options_.page->guardian_beat_ns.store(ToNanoseconds(now), std::memory_order_relaxed);
    ReadCommands();
    if (agent_gone_) {
      End();
    }
    Reap();
    CheckDeadline(now);
    KillingRound(now);
    SendEvents();
    if (!Wait(now)) {
      agent_gone_ = true;
    }
  }
}

// A few at a time: a burst of spawns must hold up neither the beat nor a deadline.
void Guardian::ReadCommands() {
  for (int i = 0; i < kCommandsPerTurn; ++i) {
    GuardianCommand command{};
    std::array<UniqueFd, 1> text;
    const ssize_t bytes = ReceiveWithDescriptors(options_.socket, &command, sizeof command, text);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (bytes != sizeof command) {
      agent_gone_ = true;
      return;
    }
    GuardianWorker* const worker = Find(command.incarnation);
    switch (command.kind) {
      case GuardianCommandKind::kSpawn: Spawn(command, std::move(text[0])); break;
      case GuardianCommandKind::kKill:
        if (worker != nullptr && !worker->gone && worker->pid != 0) {
          if (command.signal == SIGKILL) {
            BeginKilling(*worker, Now());
          } else {
            worker->asked_to_end = true;
            FindOrphans();
            SignalTree(*worker, command.signal);
          }
        }
        break;
    }
  }
}

void Guardian::Spawn(const GuardianCommand& command, UniqueFd text) {
  const auto place = std::find_if(workers_.begin(), workers_.end(),
                                  [](const GuardianWorker& worker) { return !worker.used; });
  if (place == workers_.end()) {
    const GuardianEvent event{
        GuardianEventKind::kSpawnFailed, command.incarnation, 0, 0, ENOSPC, SpawnStep::kTable, 0};
    SendWithDescriptors(options_.socket, &event, sizeof event, {});
    return;
  }
  place->used = true;
  place->incarnation = command.incarnation;
  StartWorker(*place, command, std::move(text), files_);
}

void Guardian::ReadExecResult(GuardianWorker& worker) {
  ExecFailure failure{};
  const ssize_t bytes = read(worker.exec_result.get(), &failure, sizeof failure);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (bytes == sizeof failure) {
    worker.failed_step = failure.step;
    worker.error_number = failure.error_number;
  }
  worker.exec_result.Reset();
}

void Guardian::Reap() {
  signalfd_siginfo info;
  while (read(child_signals_.get(), &info, sizeof info) > 0) {
  }
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      break;
    }
    for (GuardianWorker& worker : workers_) {
      if (worker.used && worker.pid == pid && !worker.reaped) {
        worker.reaped = true;
        worker.wait_status = status;
        if (!worker.asked_to_end) {
          BeginKilling(worker, Now());  // what it started must not outlive it
        }
        break;
      }
    }
  }
  for (GuardianWorker& worker : workers_) {
    if (worker.used && worker.starting()) {
      ReadExecResult(worker);
    }
  }
}

void Guardian::CheckDeadline(Instant now) {
  const int64_t kill_at = options_.page->kill_at_ns.load(std::memory_order_acquire);
  if (kill_at == 0 || ToNanoseconds(now) < kill_at) {
    return;
  }
  for (GuardianWorker& worker : workers_) {
    if (worker.used && worker.pid != 0 && !worker.gone) {
      BeginKilling(worker, now);
    }
  }
}

void Guardian::BeginKilling(GuardianWorker& worker, Instant now) {
  if (!worker.killing) {
    worker.killing = true;
    worker.kill_began = now;
  }
  if (!worker.reaped) {
    kill(worker.pid, SIGKILL);  // its number is its own until it is reaped
  }
}

void Guardian::FindOrphans() {
  scratch_.Clear();
  scratch_.AddChildrenOf(getpid());
  const auto lives = [](const GuardianWorker& worker) {
    return worker.used && worker.pid != 0 && !worker.reaped;
  };
  any_worker_ = std::ranges::any_of(workers_, lives);
  orphans_.Clear();
  for (int i = 0; i < scratch_.size(); ++i) {
    const FoundProcess& child = scratch_[i];
    if (std::ranges::none_of(workers_, [&](const GuardianWorker& worker) {
          return lives(worker) && worker.pid == child.pid;
        })) {
      orphans_.Add(child);
    }
  }
}

bool Guardian::Owns(const GuardianWorker& worker, const FoundProcess& orphan) const {
  const std::optional<ProcessStat> stat = ReadProcessStat(orphan.pid);
  if (!stat || stat->state == 'Z') {
    return false;
  }
  char mark[2 * local::kJobIdBytes];
  std::snprintf(mark, sizeof mark, "%s=%.*s/%u.%u", kWorkerVariable,
                static_cast<int>(options_.job_id.size()), options_.job_id.data(),
                worker.incarnation.agent, worker.incarnation.counter);
  // An orphan that nobody can be blamed for goes with the last worker.
  return stat->group == worker.pid || HasEnvironment(orphan.pid, mark) || !any_worker_;
}

int Guardian::SignalTree(const GuardianWorker& worker, int signal) {
  scratch_.Clear();
  if (!worker.reaped) {
    scratch_.Add({worker.pid, getpid()});
  }
  for (int i = 0; i < orphans_.size(); ++i) {
    if (Owns(worker, orphans_[i])) {
      scratch_.Add(orphans_[i]);
    }
  }
  scratch_.AddDescendants(0);
  // Children before their parents: a parent that ends at once, as a shell by SIGTERM, would take
  // its children out of reach, and only SIGKILL is repeated.
  int alive = 0;
  for (int i = scratch_.size(); i-- > 0;) {
    alive += SignalFound(scratch_[i], signal) ? 1 : 0;
  }
  return alive;
}

void Guardian::KillingRound(Instant now) {
  any_killing_ = false;
  if (std::ranges::none_of(workers_, [](const GuardianWorker& worker) {
        return worker.used && !worker.gone && (worker.killing || worker.reaped);
      })) {
    return;
  }
  FindOrphans();
  for (GuardianWorker& worker : workers_) {
    if (!worker.used || worker.gone) {
      continue;
    }
    if (!worker.killing) {
      // The end of a descendant wakes this loop: it is a child by then.
      worker.gone = worker.reaped && SignalTree(worker, 0) == 0;
      continue;
    }
    const int alive = SignalTree(worker, SIGKILL);
    if (worker.reaped && (alive == 0 || now - worker.kill_began > kKillRoundsLimit)) {
      worker.gone = true;
      worker.left_behind = alive;
    } else {
      any_killing_ = true;
    }
  }
}

bool Guardian::SendEvent(GuardianWorker& worker, GuardianEventKind kind) {
  const GuardianEvent event{kind,
                            worker.incarnation,
                            worker.pid,
                            worker.wait_status,
                            worker.error_number,
                            worker.failed_step,
                            worker.left_behind};
  ssize_t sent = 0;
  if (kind == GuardianEventKind::kSpawned) {
    const int descriptors[kSpawnedDescriptors] = {worker.page.get(), worker.state.get(),
                                                  worker.bell.get(), worker.output.get(),
                                                  worker.errors.get()};
    sent = SendWithDescriptors(options_.socket, &event, sizeof event, descriptors);
  } else {
    sent = SendWithDescriptors(options_.socket, &event, sizeof event, {});
  }
  socket_full_ = sent < 0 && errno == EAGAIN;
  return sent == sizeof event;
}

void Guardian::SendEvents() {
  socket_full_ = false;
  for (GuardianWorker& worker : workers_) {
    if (!worker.used || worker.starting() || socket_full_) {
      continue;
    }
    if (worker.failed()) {
      // Told once nothing of it is left, neither process nor memory.
      if (worker.pid == 0 || worker.reaped) {
        worker.page.Reset();
        worker.state.Reset();
        worker.bell.Reset();
        worker.output.Reset();
        worker.errors.Reset();
        if (SendEvent(worker, GuardianEventKind::kSpawnFailed)) {
          worker = GuardianWorker{};
        }
      }
      continue;
    }
    if (!worker.start_reported && SendEvent(worker, GuardianEventKind::kSpawned)) {
      worker.start_reported = true;
      worker.page.Reset();
      worker.state.Reset();
      worker.bell.Reset();
      worker.output.Reset();
      worker.errors.Reset();
    }
    if (worker.start_reported && worker.gone && SendEvent(worker, GuardianEventKind::kExited)) {
      worker = GuardianWorker{};
    }
  }
}

bool Guardian::Wait(Instant now) {
  std::array<pollfd, 3 + kGuardianWorkersMax> polls;
  size_t count = 0;
  polls[count++] = {options_.socket, static_cast<short>(POLLIN | (socket_full_ ? POLLOUT : 0)), 0};
  polls[count++] = {agent_handle_.get(), POLLIN, 0};
  polls[count++] = {child_signals_.get(), POLLIN, 0};
  for (const GuardianWorker& worker : workers_) {
    if (worker.used && worker.starting()) {
      polls[count++] = {worker.exec_result.get(), POLLIN, 0};
    }
  }
  Duration limit = any_killing_ ? kKillRoundInterval : kGuardianBeatInterval;
  const int64_t kill_at = options_.page->kill_at_ns.load(std::memory_order_acquire);
  if (kill_at > ToNanoseconds(now)) {
    limit = std::min(limit, FromNanoseconds(kill_at) - now);
  }
  poll(polls.data(), count, PollMilliseconds(limit));
  return polls[1].revents == 0;
}

GuardianWorker* Guardian::Find(const local::WireIncarnation& incarnation) {
  for (GuardianWorker& worker : workers_) {
    if (worker.used && worker.incarnation.agent == incarnation.agent &&
        worker.incarnation.counter == incarnation.counter) {
      return &worker;
    }
  }
  return nullptr;
}

void Guardian::End() {
  const bool clean = KillAllDescendants(scratch_);
  RemoveTraces(options_.traces, LauncherIsGone(options_.bootstrap_fd));
  _exit(clean ? 0 : 1);
}

}  // namespace

void RunGuardian(const GuardianOptions& options) {
  // Static: the tables are too large for a stack, and nothing needs an allocator.
  alignas(Guardian) static unsigned char memory[sizeof(Guardian)];
  (new (memory) Guardian(options))->Run();
}

}  // namespace elastic::internal
