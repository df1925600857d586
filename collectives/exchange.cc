#include "collectives/exchange.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

constexpr uint64_t kInterruptTag = ~uint64_t{0};
constexpr uint64_t kAbortTag = kInterruptTag - 1;
constexpr uint32_t kEdgeEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

int TimeoutMilliseconds(std::optional<Instant> deadline) {
  return deadline ? PollMilliseconds(*deadline - Now()) : -1;
}

}  // namespace

Exchange::Exchange(const Mesh& mesh, const Interrupt& interrupt)
    : mesh_(mesh),
      interrupt_(interrupt),
      epoll_(NewEpoll()),
      abort_event_(NewEventFd()),
      scratch_(mesh.scratch().Take()),
      edges_(static_cast<size_t>(mesh.size())) {
  if (!epoll_.valid() || !abort_event_.valid()) {
    failed_ = ResourceExhaustedError(
        "no file descriptor left for a communicator: raise the limit (ulimit -n)");
    return;
  }
  Watch(abort_event_.get(), kAbortTag, EPOLLIN);
  Watch(interrupt.event_fd(), kInterruptTag, EPOLLIN | EPOLLET);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const int socket = mesh.edge(rank).socket.get();
    edges_[static_cast<size_t>(rank)].socket = socket;
    if (socket >= 0) {
      Watch(socket, static_cast<uint64_t>(rank), kEdgeEvents);
    }
  }
}

Exchange::~Exchange() { mesh_.scratch().Give(std::move(scratch_)); }

void Exchange::Watch(int fd, uint64_t tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    failed_ = ErrnoError(errno, "cannot watch a communicator's descriptors");
  }
}

std::optional<Status> Exchange::Interrupted() const {
  if (aborted_.load(std::memory_order_acquire)) {
    return AbortedError("communicator of generation " + ToString(mesh_.generation()) +
                        " was aborted");
  }
  if (interrupt_.Over(mesh_.generation().number)) {
    return AbortedError("generation " + ToString(mesh_.generation()) + " is over");
  }
  return std::nullopt;
}

Status Exchange::Usable() {
  if (const std::optional<Status> interrupted = Interrupted()) {
    return *interrupted;
  }
  return failed_;
}

void Exchange::Begin(const Work& work, const Agreement& own) {
  work_ = work;
  header_ = Encode(work.header);
  own_ = own;
  slots_.assign(static_cast<size_t>(plan_.slots), own);
  sending_.assign(plan_.outbound.size(), Sending{});
  receiving_.assign(plan_.inbound.size(), Receiving{});
  for (size_t i = 0; i < sending_.size() && failed_.ok(); ++i) {
    Send(i);
  }
}

bool Exchange::Done() const {
  return std::ranges::all_of(sending_, &Sending::done) &&
         std::ranges::all_of(receiving_, &Receiving::done);
}

Status Exchange::Complete(std::optional<Instant> deadline) {
  while (failed_.ok() && !Done()) {
    // Reread between any two steps, so that a running transfer ends within one step of a mark, and
    // after every wait, whose bell says nothing by itself.
    if (const std::optional<Status> interrupted = Interrupted()) {
      failed_ = *interrupted;
      break;
    }
    if (!Progress() && failed_.ok() && !Done()) {
      Wait(deadline);
    }
  }
  return failed_;
}

bool Exchange::Progress() {
  bool moved = false;
  for (size_t i = 0; i < sending_.size() && failed_.ok(); ++i) {
    moved |= Send(i);
  }
  for (size_t i = 0; i < receiving_.size() && failed_.ok(); ++i) {
    moved |= Receive(i);
  }
  return moved;
}

void Exchange::PeerBroke(int rank, const std::string& how) {
  // Sockets of a generation that is over break in any order; only a break in a living one says
  // something about the peer (P18).
  if (const std::optional<Status> interrupted = Interrupted()) {
    failed_ = *interrupted;
    return;
  }
  const WorkerIncarnation peer = mesh_.edge(rank).peer;
  failed_ =
      UnavailableError(StrCat("connection to rank ", rank, " (worker ", ToString(peer),
                              ") of generation ", ToString(mesh_.generation()), " broke: ", how));
  MutexLock lock(mutex_);
  broken_peer_ = peer;
}

void Exchange::Wait(std::optional<Instant> deadline) {
  if (deadline && Now() >= *deadline) {
    failed_ = DeadlineExceededError(
        StrCat(DescribeHeader(header_), " was not complete when its deadline passed"));
    return;
  }
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               TimeoutMilliseconds(deadline));
  if (count < 0) {
    ELASTIC_CHECK(errno == EINTR);
    return;
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u64 == kInterruptTag || event.data.u64 == kAbortTag) {
      continue;  // the caller rereads what they stand for
    }
    Edge& edge = edges_[event.data.u64];
    const bool ended = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    edge.ended |= ended;
    edge.readable |= ended || (event.events & EPOLLIN) != 0;
    edge.writable |= ended || (event.events & EPOLLOUT) != 0;
  }
}

void Exchange::Abort() {
  aborted_.store(true, std::memory_order_release);
  if (abort_event_.valid()) {
    RingEventFd(abort_event_.get());
  }
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    const int socket = mesh_.edge(rank).socket.get();
    if (socket >= 0) {
      shutdown(socket, SHUT_RDWR);
    }
  }
}

std::optional<WorkerIncarnation> Exchange::broken_peer() const {
  MutexLock lock(mutex_);
  return broken_peer_;
}

}  // namespace elastic::internal
