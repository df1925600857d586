#include "worker_runtime/link/runtime_thread.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <future>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

namespace {

// SIGKILL and nothing softer: handlers and destructors of the program must not run any more.
[[noreturn]] void EndProcess(const std::string& why) {
  LogError(why, ": this process ends");
  kill(getpid(), SIGKILL);
  _exit(1);
}

}  // namespace

// The thread inherits the mask of its creator: all signals go to the program's threads.
Status RuntimeThread::Start() {
  std::promise<Status> set_up;
  std::future<Status> outcome = set_up.get_future();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, &set_up] {
    Status status = SetUp();
    const bool ok = status.ok();
    set_up.set_value(std::move(status));
    if (ok) {
      Loop();
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return outcome.get();
}

void RuntimeThread::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  stop_ = true;
  (void)eventfd_write(parts_.wake_fd, 1);
  thread_.join();
}

Status RuntimeThread::SetUp() {
  pthread_setname_np(pthread_self(), "elastic-runtime");
  if (Status slice = RequestShortSlice(SliceInheritance::kResetOnFork); !slice.ok()) {
    LogDebug("no short scheduler slice: ", slice.ToString());
  }
  RETURN_IF_ERROR(parts_.page.LockOwner());
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  timer_ = UniqueFd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !timer_.valid()) {
    return ErrnoError(errno, "epoll_create1 or timerfd_create");
  }
  itimerspec beat{};
  beat.it_interval.tv_nsec = kWorkerBeatInterval.count();
  beat.it_value.tv_nsec = kWorkerBeatInterval.count();
  if (timerfd_settime(timer_.get(), 0, &beat, nullptr) != 0) {
    return ErrnoError(errno, "timerfd_settime");
  }
  Watch(parts_.socket.fd(), EPOLLIN);
  Watch(parts_.bell_fd, EPOLLIN | EPOLLET);
  Watch(parts_.context.event_fd(), EPOLLIN);
  Watch(timer_.get(), EPOLLIN);
  Watch(parts_.wake_fd, EPOLLIN);
  parts_.page.Beat();
  return OkStatus();
}

void RuntimeThread::Watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void RuntimeThread::Loop() {
  std::array<epoll_event, 8> events{};
  // A fence or a frame may have come before the first wait.
  parts_.member.WordMayHaveChanged();
  while (!stop_) {
    DoLinkWork();
    const bool unsent = parts_.member.HasUnsent();
    if (unsent != watching_writes_) {
      watching_writes_ = unsent;
      Watch(parts_.socket.fd(), EPOLLIN | (unsent ? uint32_t{EPOLLOUT} : 0u));
    }
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    // The agent's frames first: a peer that knows this worker's new name may dial it in the same
    // moment as the frame that tells it.
    const auto end = events.begin() + std::max(count, 0);
    std::partition(events.begin(), end,
                   [&](const epoll_event& event) { return event.data.fd == parts_.socket.fd(); });
    for (auto event = events.begin(); event != end; ++event) {
      OnEvent(event->data.fd, event->events);
    }
  }
  Leave();
}

void RuntimeThread::OnEvent(int fd, uint32_t events) {
  if (fd == parts_.bell_fd) {
    parts_.member.WordMayHaveChanged();
  } else if (fd == parts_.socket.fd()) {
    if ((events & EPOLLOUT) != 0) {
      parts_.member.FlushSocket();
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      OnFrames();
    }
  } else if (fd == parts_.context.event_fd()) {
    parts_.context.Progress();
  } else if (fd == timer_.get()) {
    OnBeat();
  } else {
    eventfd_t wakes = 0;
    (void)eventfd_read(parts_.wake_fd, &wakes);
  }
}

void RuntimeThread::OnBeat() {
  uint64_t expirations = 0;
  (void)!read(timer_.get(), &expirations, sizeof expirations);
  const Instant now = Now();
  const int64_t kill_at_ns = parts_.page.kill_at_ns();
  if (kill_at_ns != 0 && ToNanoseconds(now) >= kill_at_ns) {
    EndProcess("the deadline that the agent set for this worker has passed");
  }
  parts_.page.Beat();
  if (const auto deadline = parts_.context.NextDeadline(); deadline && *deadline <= now) {
    parts_.context.Progress();
  }
  const auto due = std::ranges::find_if(
      retries_, [&](const auto& retry) { return retry.second && *retry.second <= now; });
  if (due != retries_.end()) {  // another one waits for the next beat
    parts_.context.RetryEdges(retries_.extract(due).key());
  }
  if (postponed_ && postponed_->until <= now) {
    failed_holders_.clear();
    Fetch(std::exchange(postponed_, std::nullopt)->fetch);
  }
}

// ---- the agent ----------------------------------------

void RuntimeThread::OnFrames() {
  while (true) {
    StatusOr<std::optional<local::Frame>> frame = parts_.socket.Receive();
    if (!frame.ok()) {
      if (!left_) {
        EndProcess(frame.status().message());
      }
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, parts_.socket.fd(), nullptr);
      return;
    }
    if (!frame->has_value()) {
      return;
    }
    OnFrame(**frame);
  }
}

void RuntimeThread::OnFrame(const local::Frame& frame) {
  const StatusOr<local::FrameKind> kind = local::CheckFrame(frame);
  if (!kind.ok()) {
    LogWarning("frame from the agent refused: ", kind.status().ToString());
    return;
  }
  switch (*kind) {
    case local::FrameKind::kRosterPart: {
      StatusOr<std::optional<Roster>> roster = rosters_.Add(frame);
      if (!roster.ok()) {
        LogWarning("roster from the agent refused: ", roster.status().ToString());
      } else if (roster->has_value()) {
        parts_.member.RosterCame(std::move(**roster));
      }
      return;
    }
    case local::FrameKind::kFinishRecorded: {
      const auto body = local::BodyOf<local::FinishRecorded>(frame);
      if (body.ok()) {
        parts_.member.FinishCame(
            {local::FromWire(body->generation), local::FromWire(body->final_state)});
      }
      return;
    }
    case local::FrameKind::kLeave: parts_.member.LeaveCame(); return;
    case local::FrameKind::kStopWanted: parts_.member.StopCame(); return;
    case local::FrameKind::kOfferedAgain: {
      const auto body = local::BodyOf<local::OfferedAgain>(frame);
      if (body.ok()) {
        parts_.member.OfferedAgain(local::FromWire(body->incarnation));
        parts_.context.SetSelf(local::FromWire(body->incarnation));
      }
      return;
    }
    case local::FrameKind::kStoreAnswer: {
      StatusOr<local::StoreReply> reply = local::StoreReplyOf(frame);
      if (reply.ok()) {
        parts_.member.StoreAnswered(std::move(*reply));
      }
      return;
    }
    default:
      LogWarning("frame from the agent refused: kind ", static_cast<int>(*kind),
                 " is none that a worker receives");
  }
}

}  // namespace elastic::internal
