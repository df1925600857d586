#include "launcher/agent/agent_driver.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "launcher/agent/agent_limits.h"
#include "launcher/base/process_tree.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

AgentDriver::AgentDriver(Parts parts)
    : parts_(std::move(parts)),
      core_({.host = parts_.bootstrap.host,
             .slots = parts_.bootstrap.slots,
             .orphan_limit = parts_.bootstrap.orphan_limit,
             .grace_period = parts_.bootstrap.grace_period},
            Now()),
      table_(parts_.bootstrap.job_id, parts_.guardian.pid()),
      next_beat_check_(Now() + kWorkerBeatInterval) {}

AgentDriver::~AgentDriver() = default;

StatusOr<std::unique_ptr<AgentDriver>> AgentDriver::Create(Parts parts) {
  std::unique_ptr<AgentDriver> driver(new AgentDriver(std::move(parts)));
  RETURN_IF_ERROR(driver->Start());
  return driver;
}

Status AgentDriver::Start() {
  const AgentBootstrap& bootstrap = parts_.bootstrap;
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  ASSIGN_OR_RETURN(link_, WorkerLink::Listen(parts_.traces.worker_socket, bootstrap.job_id, *this));
  ASSIGN_OR_RETURN(copies_, CopyServer::Start({.listen_address = bootstrap.listen_address,
                                               .job_id = bootstrap.job_id,
                                               .job_nonce = bootstrap.job_nonce}));
  for (int fd : {parts_.inbox.fd(), parts_.guardian.socket(), parts_.guardian.handle(),
                 parts_.signals_fd, link_->fd()}) {
    RETURN_IF_ERROR(Watch(fd));
  }
  // A file or terminal, when somebody starts an agent by hand, can't be watched; then only signals
  // end it.
  if (!Watch(parts_.bootstrap_fd).ok()) {
    LogWarning("standard input is no pipe: the end of the launcher will not be noticed");
  }
  Feed(agent_event::CopiesServed{copies_->endpoint()});
  return OkStatus();
}

Status AgentDriver::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoError(errno, "epoll_ctl of the agent");
  }
  return OkStatus();
}

int AgentDriver::Run() {
  Pump();
  while (!exit_code_) {
    Wait();
  }
  return *exit_code_;
}

void AgentDriver::Wait() {
  Instant wake = next_beat_check_;
  if (const auto deadline = core_.NextDeadline()) {
    wake = std::min(wake, *deadline);
  }
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               PollMilliseconds(wake - Now()));
  // Deadlines first: an agent that was stopped must not act on what came meanwhile as if it had
  // been there (P23).
  CheckDeadline(Now());
  const auto came = [&](int fd) {
    return std::any_of(events.begin(), events.begin() + std::max(count, 0),
                       [fd](const epoll_event& event) { return event.data.fd == fd; });
  };
  if (came(parts_.inbox.fd())) {
    HandleInbox();
    Pump();
  }
  if (came(link_->fd())) {
    link_->Progress();
    Pump();
  }
  if (came(parts_.guardian.socket()) || came(parts_.guardian.handle())) {
    HandleGuardian();
  }
  if (came(parts_.signals_fd)) {
    HandleSignals();
  }
  if (came(parts_.bootstrap_fd)) {
    HandleBootstrapInput();
  }
  CheckBeats(Now());
  Pump();
}

void AgentDriver::CheckDeadline(Instant now) {
  const auto deadline = core_.NextDeadline();
  if (!deadline || *deadline > now) {
    return;
  }
  // A heartbeat tells the pages as they are now.
  for (const auto& [process, entry] : table_.entries()) {
    if (entry.page != nullptr && !entry.exited) {
      Feed(agent_event::PageRead{process, {}});
    }
  }
  Feed(agent_event::TimePassed{});
  Pump();
}

void AgentDriver::HandleInbox() {
  for (InboxMessage& message : parts_.inbox.Take()) {
    if (const auto* end = std::get_if<OwnerEnded>(&message)) {
      WorkerEntry* const entry = table_.Find(end->incarnation);
      if (entry == nullptr || entry->exited) {
        continue;
      }
      entry->owner_gone = true;
      link_->Drain(end->incarnation);  // what it said before still counts
      if (end->how == OwnerEnd::kDied) {
        Feed(agent_event::OwnerDied{end->incarnation, {}});
      } else {
        Feed(agent_event::Leaving{end->incarnation}, end->incarnation);
      }
    } else if (auto* directive = std::get_if<LinkDirective>(&message)) {
      Feed(agent_event::DirectiveCame{std::move(directive->directive)});
    } else if (const auto* registered = std::get_if<LinkRegistered>(&message)) {
      Feed(agent_event::Registered{registered->agent, registered->server});
    } else if (const auto* lost = std::get_if<LinkLost>(&message)) {
      LogInfo("the stream to the server has ended: ", lost->reason.message());
      Feed(agent_event::StreamLost{});
    } else if (const auto* refused = std::get_if<LinkRefused>(&message)) {
      Feed(agent_event::Refused{refused->reason.code(), refused->reason.message()});
    }
  }
}

void AgentDriver::HandleGuardian() {
  for (;;) {
    StatusOr<std::optional<GuardianNews>> news = parts_.guardian.Receive();
    if (!news.ok()) {
      Check(news.status());
      return;
    }
    if (!news->has_value()) {
      return;
    }
    HandleGuardianNews(std::move(**news));
    Pump();
  }
}

void AgentDriver::HandleGuardianNews(GuardianNews news) {
  const WorkerIncarnation process = news.incarnation;
  WorkerEntry* const entry = table_.Find(process);
  if (entry == nullptr) {
    return;  // given up already
  }
  switch (news.kind) {
    case GuardianEventKind::kSpawned: HandleSpawned(*entry, std::move(news)); break;
    case GuardianEventKind::kSpawnFailed:
      Feed(agent_event::SpawnFailed{
          news.incarnation, parts_.bootstrap.command.front() + ": " + news.message, news.hopeless});
      table_.Remove(news.incarnation);
      break;
    case GuardianEventKind::kExited:
      if (news.left_behind > 0) {
        LogError(news.left_behind, " processes of worker ", ToString(news.incarnation),
                 " cannot be killed (uninterruptible wait)");
      }
      link_->Drain(news.incarnation);  // to its end, before the exit is reported (P30)
      entry->exited = true;
      Feed(agent_event::Exited{news.incarnation, news.status, {}});
      break;
  }
  link_->SpawnEnded(process);
}

void AgentDriver::HandleSpawned(WorkerEntry& entry, GuardianNews news) {
  entry.pid = news.pid;
  entry.descriptors = std::move(news.descriptors);
  auto page = PageView::Map(entry.descriptors.page.get(), entry.descriptors.bell.get());
  if (!page.ok()) {
    // Without its page a worker can't be fenced, so it can't live.
    LogError("worker ", ToString(entry.process), ": ", page.error().message());
    Check(parts_.guardian.Kill(entry.process, SIGKILL));
    Feed(agent_event::SpawnFailed{entry.process, page.error().message(), false});
    table_.Remove(entry.process);
    return;
  }
  entry.page = std::move(*page);
  if (kill_at_ != Instant{}) {
    entry.page->StampDeadline(kill_at_);
  }
  copies_->Register(entry.process, entry.descriptors.state.get());
  parts_.output.Add(entry.process, StrCat(parts_.bootstrap.host, ':', entry.slot),
                    std::move(entry.descriptors.output), std::move(entry.descriptors.errors));
  Feed(agent_event::Spawned{entry.process, entry.pid});
}

void AgentDriver::HandleSignals() {
  signalfd_siginfo info;
  while (read(parts_.signals_fd, &info, sizeof info) == sizeof info) {
    Feed(agent_event::LauncherGone{
        StrCat("the agent got signal ", info.ssi_signo, " from process ", info.ssi_pid)});
  }
}

void AgentDriver::HandleBootstrapInput() {
  char buffer[4096];
  const ssize_t bytes = read(parts_.bootstrap_fd, buffer, sizeof buffer);
  if (bytes > 0 || (bytes < 0 && (errno == EINTR || errno == EAGAIN))) {
    return;  // nothing that follows the bootstrap line means anything
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, parts_.bootstrap_fd, nullptr);
  Feed(agent_event::LauncherGone{"elastic-run has ended or has closed the agent's input"});
}

void AgentDriver::CheckBeats(Instant now) {
  if (now < next_beat_check_) {
    return;
  }
  next_beat_check_ = now + kWorkerBeatInterval;
  CheckGuardianBeat();
  link_->RetryAccept();
  for (auto& [process, entry] : table_.entries()) {
    if (entry.page != nullptr && !entry.exited && entry.page->OwnerReady()) {
      CheckWorkerBeat(entry);
    }
  }
}

// Counted in own looks, not in time: after a suspension of the whole host the guardian has had no
// chance to beat yet.
void AgentDriver::CheckGuardianBeat() {
  const int64_t beat = parts_.guardian.page().guardian_beat_ns.load(std::memory_order_relaxed);
  guardian_silent_checks_ = beat == guardian_beat_ ? guardian_silent_checks_ + 1 : 0;
  guardian_beat_ = beat;
  if (guardian_silent_checks_ >= kGuardianSilenceLimit / kWorkerBeatInterval) {
    Check(UnavailableError(StrCat("guardian (pid ", parts_.guardian.pid(), ") was silent for ",
                                  FormatDuration(kGuardianSilenceLimit))));
  }
}

void AgentDriver::WatchOwner(WorkerEntry& entry) {
  entry.watched = true;
  if (!FutexWatch::Supported()) {
    LogInfo(
        "no futex_waitv (before Linux 5.16, or forbidden by seccomp): deaths are seen by exits");
    return;
  }
  const auto try_add = [&entry](const std::unique_ptr<FutexWatch>& watch) {
    return watch->Add(entry.process, entry.page->owner_word());
  };
  if (std::ranges::any_of(watches_, try_add)) {
    return;
  }
  watches_.push_back(std::make_unique<FutexWatch>(
      [&inbox = parts_.inbox](WorkerIncarnation incarnation, OwnerEnd how) {
        inbox.Post(OwnerEnded{incarnation, how});
      }));
  try_add(watches_.back());
}

void AgentDriver::CheckWorkerBeat(WorkerEntry& entry) {
  if (!entry.watched) {
    WatchOwner(entry);
  }
  const uint64_t beats = entry.page->Read().beats;
  if (beats == entry.beats && !entry.owner_gone) {
    const pid_t pid = entry.runtime_pid != 0 ? entry.runtime_pid : static_cast<pid_t>(entry.pid);
    if (const auto stat = ReadProcessStat(pid)) {
      Feed(agent_event::BeatMissed{entry.process, stat->state});
    }
  }
  entry.beats = beats;
}

StatusOr<std::optional<WorkerIncarnation>> AgentDriver::Identify(pid_t pid) {
  return table_.Identify(pid);
}

StatusOr<std::optional<WorkerLink::Owner::Greeting>> AgentDriver::Greet(WorkerIncarnation process,
                                                                        pid_t pid) {
  WorkerEntry* const found = table_.Find(process);
  if (found == nullptr || found->exited) {
    return FailedPreconditionError("this worker incarnation is over");
  }
  WorkerEntry& entry = *found;
  if (entry.runtime_pid != 0) {
    return FailedPreconditionError(StrCat("process ", entry.runtime_pid,
                                          " has connected as the worker of slot ", entry.slot,
                                          ": one process per slot may use the runtime"));
  }
  if (entry.page == nullptr) {
    return std::optional<Greeting>();  // it is faster than the guardian's word
  }
  entry.runtime_pid = pid;
  Greeting greeting;
  local::Welcome& welcome = greeting.welcome;
  welcome.incarnation = local::ToWire(entry.incarnation);
  welcome.job_nonce = parts_.bootstrap.job_nonce;
  parts_.bootstrap.listen_address.copy(welcome.listen_address, sizeof welcome.listen_address - 1);
  greeting.page = entry.descriptors.page.get();
  greeting.state = entry.descriptors.state.get();
  greeting.bell = entry.descriptors.bell.get();
  return std::optional<Greeting>(greeting);
}

Status AgentDriver::Said(WorkerIncarnation process, local::FrameKind kind,
                         std::span<const std::byte> frame) {
  WorkerEntry* const entry = table_.Find(process);
  if (entry == nullptr) {
    return FailedPreconditionError("this worker incarnation is over");
  }
  switch (kind) {
    case local::FrameKind::kReady: {
      ASSIGN_OR_RETURN(const local::Ready body, local::BodyOf<local::Ready>(frame));
      ASSIGN_OR_RETURN(Endpoint data, local::FromWire(body.data));
      if (!entry->page->OwnerReady()) {
        return FailedPreconditionError("READY before the owner mutex of the page was locked");
      }
      CheckWorkerBeat(*entry);  // from here on its death must be seen at once
      Feed(agent_event::Ready{process, std::move(data)}, process);
      return OkStatus();
    }
    case local::FrameKind::kEntered: {
      ASSIGN_OR_RETURN(const local::Entered body, local::BodyOf<local::Entered>(frame));
      Feed(agent_event::Entered{process, local::FromWire(body.generation)}, process);
      return OkStatus();
    }
    case local::FrameKind::kAccuse: {
      ASSIGN_OR_RETURN(const local::Accuse body, local::BodyOf<local::Accuse>(frame));
      Feed(agent_event::Accused{process,
                                {local::FromWire(body.generation), local::FromWire(body.accused)}},
           process);
      return OkStatus();
    }
    case local::FrameKind::kFinished: {
      ASSIGN_OR_RETURN(const local::Finished body, local::BodyOf<local::Finished>(frame));
      Feed(agent_event::Finished{process, local::FromWire(body.generation),
                                 local::FromWire(body.state)},
           process);
      return OkStatus();
    }
    case local::FrameKind::kProgramError: {
      ASSIGN_OR_RETURN(const local::ProgramError body, local::BodyOf<local::ProgramError>(frame));
      const size_t bytes = strnlen(body.message, sizeof body.message);
      Feed(agent_event::ProgramFailed{process, std::string(body.message, bytes)}, process);
      return OkStatus();
    }
    case local::FrameKind::kLeaving:
      Feed(agent_event::Leaving{process}, process);
      return OkStatus();
    case local::FrameKind::kWordSettled:
      Feed(agent_event::PageRead{process, {}});
      return OkStatus();
    case local::FrameKind::kPut:
    case local::FrameKind::kGet: return SaidOfStore(process, kind, frame);
    default: return InvalidArgumentError(StrCat("unexpected frame kind ", static_cast<int>(kind)));
  }
}

}  // namespace elastic::internal
