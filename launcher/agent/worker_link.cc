#include "launcher/agent/worker_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "launcher/agent/agent_limits.h"
#include "launcher/agent/pass_descriptors.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

using local::FrameKind;

// Frames of workers are small, but for a put; the large ones go the other way.
constexpr size_t kWorkerFrameBytesMax = 4096 + kStoreKeyBytesMax + kStoreValueBytesMax;

}  // namespace

StatusOr<std::unique_ptr<WorkerLink>> WorkerLink::Listen(const std::string& path,
                                                         std::string job_id, Owner& owner) {
  std::unique_ptr<WorkerLink> link(new WorkerLink(std::move(job_id), owner));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return InvalidArgumentError(StrCat("the socket path '", path, "' has ", path.size(),
                                       " bytes, at most ", sizeof address.sun_path - 1,
                                       " are possible: set TMPDIR to a shorter folder"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  link->listener_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A former agent with this pid may have been killed before it could remove its socket.
  unlink(path.c_str());
  const mode_t former = umask(0077);
  const bool bound =
      bind(link->listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int bind_errno = errno;
  umask(former);
  if (!bound) {
    return ErrnoError(bind_errno, "bind of the workers' socket " + path);
  }
  link->epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = link->listener_.get();
  if (listen(link->listener_.get(), kSlotsPerHostMax) != 0 ||
      epoll_ctl(link->epoll_.get(), EPOLL_CTL_ADD, link->listener_.get(), &event) != 0) {
    return ErrnoError(errno, "listen on the workers' socket " + path);
  }
  return link;
}

WorkerLink::~WorkerLink() = default;

void WorkerLink::Progress() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == listener_.get()) {
      Accept();
      continue;
    }
    const auto found = connections_.find(events[i].data.fd);
    if (found == connections_.end()) {
      continue;
    }
    Connection& connection = found->second;
    if ((events[i].events & EPOLLOUT) != 0) {
      Flush(connection);
    }
    // More than that waits for the next turn, so that one worker cannot keep the agent busy.
    for (int frames = 0; frames < kFramesPerTurnMax && ReadFrame(connection); ++frames) {
    }
  }
  Sweep();
}

void WorkerLink::Accept() {
  for (;;) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        if (!std::exchange(told_failure_, true)) {
          LogError("no connection of a worker can be accepted at present: ", std::strerror(errno),
                   " (ulimit -n)");
        }
        WatchListener(false);  // it stays readable
      }
      return;
    }
    told_failure_ = false;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    const auto strangers = std::ranges::count_if(
        connections_, [](const auto& entry) { return !entry.second.who.has_value(); });
    if (!known || peer.uid != geteuid() || strangers >= kPendingConnectionsMax) {
      continue;  // closes it; the folder lets no other user come this far
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
      continue;
    }
    Connection& connection = connections_[event.data.fd];
    connection.pid = peer.pid;
    connection.fd = std::move(fd);
  }
}

void WorkerLink::WatchListener(bool watch) {
  epoll_event event{};
  event.events = watch ? EPOLLIN : 0u;
  event.data.fd = listener_.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
  accepting_ = watch;
}

void WorkerLink::RetryAccept() {
  if (!accepting_) {
    WatchListener(true);
  }
}

bool WorkerLink::ReadFrame(Connection& connection) {
  if (connection.closing) {
    return false;
  }
  std::array<std::byte, kWorkerFrameBytesMax> buffer;
  // Descriptors that a process sends along are none of ours: closed.
  const ssize_t bytes =
      ReceiveWithDescriptors(connection.fd.get(), buffer.data(), buffer.size(), {});
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return false;
  }
  if (bytes < 0 && errno == EMSGSIZE) {
    Refuse(connection,
           InvalidArgumentError(StrCat("a frame has more than ", buffer.size(), " bytes")));
    return false;
  }
  if (bytes <= 0) {
    connection.closing = true;
    return false;
  }
  const Status status =
      HandleFrame(connection, std::span(buffer).first(static_cast<size_t>(bytes)));
  if (!status.ok()) {
    Refuse(connection, status);
  }
  return status.ok();
}

Status WorkerLink::HandleFrame(Connection& connection, std::span<const std::byte> frame) {
  ASSIGN_OR_RETURN(const FrameKind kind, local::CheckFrame(frame));
  if (!local::IsFromWorker(kind)) {
    return InvalidArgumentError(
        StrCat("frame kind ", static_cast<int>(kind), " is not one that a worker sends"));
  }
  if (kind == FrameKind::kHello) {
    return HandleHello(connection, frame);
  }
  if (!connection.who) {
    return FailedPreconditionError("the first frame must be HELLO, and WELCOME be awaited");
  }
  return owner_.Said(*connection.who, kind, frame);
}

Status WorkerLink::HandleHello(Connection& connection, std::span<const std::byte> frame) {
  if (connection.who || connection.hello_waits) {
    return FailedPreconditionError("HELLO was sent before");
  }
  ASSIGN_OR_RETURN(const local::Hello hello, local::BodyOf<local::Hello>(frame));
  if (hello.version_min > local::kVersionMax || hello.version_max < local::kVersionMin) {
    return FailedPreconditionError(
        StrCat("this program's library speaks versions ", hello.version_min, " to ",
               hello.version_max, " of the agent's link, this agent ", local::kVersionMin, " to ",
               local::kVersionMax, ": build the program with a library of this release"));
  }
  const std::string_view job(hello.job_id, strnlen(hello.job_id, sizeof hello.job_id));
  if (job != job_id_) {
    return FailedPreconditionError(
        StrCat("ELASTIC_JOB_ID is '", job, "', this agent works for job '", job_id_, "'"));
  }
  connection.hello_waits = true;
  return TryIdentify(connection);
}

Status WorkerLink::TryIdentify(Connection& connection) {
  if (!connection.claim) {
    ASSIGN_OR_RETURN(connection.claim, owner_.Identify(connection.pid));
  }
  if (!connection.claim) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::optional<Owner::Greeting> greeting,
                   owner_.Greet(*connection.claim, connection.pid));
  if (!greeting) {
    return OkStatus();
  }
  connection.hello_waits = false;
  connection.who = connection.claim;
  const local::Frame frame = local::MakeFrame(FrameKind::kWelcome, greeting->welcome);
  const int descriptors[] = {greeting->page, greeting->state, greeting->bell};
  if (SendWithDescriptors(connection.fd.get(), frame.data(), frame.size(), descriptors) < 0) {
    connection.closing = true;  // gone again
  }
  return OkStatus();
}

void WorkerLink::SpawnEnded(WorkerIncarnation incarnation) {
  for (auto& [fd, connection] : connections_) {
    const bool concerned = !connection.claim || connection.claim == incarnation;
    if (connection.hello_waits && concerned && !connection.closing) {
      const Status status = TryIdentify(connection);
      if (!status.ok()) {
        Refuse(connection, status);
      }
    }
  }
  Sweep();
}

void WorkerLink::Drain(WorkerIncarnation incarnation) {
  Connection* const connection = Find(incarnation);
  while (connection != nullptr && ReadFrame(*connection)) {
  }
}

void WorkerLink::Refuse(Connection& connection, const Status& reason) {
  LogWarning("agent refuses a frame of process ", connection.pid, ": ", reason.message());
  local::Refused refused{};
  reason.message().copy(refused.message, sizeof refused.message - 1);
  const local::Frame frame = local::MakeFrame(FrameKind::kRefused, refused);
  SendWithDescriptors(connection.fd.get(), frame.data(), frame.size(), {});
  connection.closing = true;
}

void WorkerLink::Send(WorkerIncarnation incarnation, local::Frame frame) {
  Connection* const connection = Find(incarnation);
  if (connection == nullptr || connection->closing) {
    return;
  }
  if (connection->outbox.size() >= kOutboxFramesMax) {
    Refuse(*connection,
           ResourceExhaustedError(StrCat("worker ", ToString(incarnation), " left ",
                                         kOutboxFramesMax, " frames of its agent unread")));
    return;
  }
  connection->outbox.push_back(std::move(frame));
  Flush(*connection);
}

void WorkerLink::Flush(Connection& connection) {
  while (!connection.outbox.empty()) {
    const local::Frame& frame = connection.outbox.front();
    if (SendWithDescriptors(connection.fd.get(), frame.data(), frame.size(), {}) < 0) {
      connection.closing = connection.closing || errno != EAGAIN;
      break;
    }
    connection.outbox.pop_front();
  }
  WatchForRoom(connection);
}

void WorkerLink::WatchForRoom(const Connection& connection) {
  epoll_event event{};
  event.events = EPOLLIN | (connection.outbox.empty() ? 0u : EPOLLOUT);
  event.data.fd = connection.fd.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event);
}

WorkerLink::Connection* WorkerLink::Find(WorkerIncarnation incarnation) {
  for (auto& [fd, connection] : connections_) {
    if (connection.who == incarnation) {
      return &connection;
    }
  }
  return nullptr;
}

void WorkerLink::Close(WorkerIncarnation incarnation) {
  if (Connection* const connection = Find(incarnation)) {
    connection->closing = true;
    Sweep();
  }
}

// Connections go only here, never while one of them is being looked at.
void WorkerLink::Sweep() {
  std::erase_if(connections_, [](const auto& entry) { return entry.second.closing; });
}

}  // namespace elastic::internal
