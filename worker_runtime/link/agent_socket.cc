#include "worker_runtime/link/agent_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

namespace {

// An agent answers within microseconds; one that does not within this time is stopped or gone.
constexpr Duration kGreetingLimit = std::chrono::seconds(10);
constexpr size_t kWelcomeDescriptors = 3;

std::string Advice(const std::string& path) {
  return StrCat("agent at ", path,
                " (ELASTIC_AGENT_SOCKET): start the program with elastic-run, or unset "
                "ELASTIC_AGENT_SOCKET and ELASTIC_JOB_ID to train alone");
}

struct Message {
  local::Frame frame;
  std::vector<UniqueFd> descriptors;
};

// Reads one message with the descriptors that travel with it.
StatusOr<Message> ReceiveWithDescriptors(int socket) {
  Message message;
  message.frame.resize(kLocalFrameBytesMax);
  iovec part{message.frame.data(), message.frame.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(8 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (bytes <= 0) {
    return UnavailableError("the agent closed the connection");
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return ResourceExhaustedError(
        StrCat("this process has no room for ", kWelcomeDescriptors,
               " more descriptors from the agent: raise its limit (ulimit -n)"));
  }
  message.frame.resize(static_cast<size_t>(bytes));
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof fd);
      message.descriptors.emplace_back(fd);
    }
  }
  return message;
}

}  // namespace

StatusOr<std::unique_ptr<AgentSocket>> AgentSocket::Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return InvalidArgumentError(StrCat("ELASTIC_AGENT_SOCKET has ", path.size(),
                                       " characters, need 1 to ", sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    return ErrnoError(errno, "socket");
  }
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return UnavailableError(StrCat("cannot reach the ", Advice(path), ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AgentSocket>(new AgentSocket(std::move(fd)));
}

StatusOr<AgentSocket::Greeting> AgentSocket::Greet(const std::string& job_id) {
  if (job_id.size() >= static_cast<size_t>(local::kJobIdBytes)) {
    return InvalidArgumentError(StrCat("ELASTIC_JOB_ID has ", job_id.size(),
                                       " characters, at most ", local::kJobIdBytes - 1));
  }
  local::Hello hello{};
  hello.version_min = local::kVersionMin;
  hello.version_max = local::kVersionMax;
  std::memcpy(hello.job_id, job_id.data(), job_id.size());
  const local::Frame frame = local::MakeFrame(local::FrameKind::kHello, hello);
  if (send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) {
    return UnavailableError(StrCat("the agent closed the connection: ", std::strerror(errno)));
  }
  pollfd wait{fd_.get(), POLLIN, 0};
  const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(kGreetingLimit);
  int ready = 0;
  do {
    ready = poll(&wait, 1, static_cast<int>(limit_ms.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return UnavailableError(
        StrCat("the agent did not answer within ", FormatDuration(kGreetingLimit),
               ", which no flag changes: it is stopped, or its host has far too little CPU for the "
               "workers that start on it; give it fewer slots (-H)"));
  }
  ASSIGN_OR_RETURN(Message message, ReceiveWithDescriptors(fd_.get()));
  ASSIGN_OR_RETURN(const local::FrameKind kind, local::CheckFrame(message.frame));
  if (kind == local::FrameKind::kRefused) {
    ASSIGN_OR_RETURN(local::Refused refused, local::BodyOf<local::Refused>(message.frame));
    refused.message[local::kMessageBytes - 1] = '\0';
    return FailedPreconditionError(
        StrCat("the agent refuses this process: ", static_cast<const char*>(refused.message)));
  }
  if (kind != local::FrameKind::kWelcome || message.descriptors.size() != kWelcomeDescriptors) {
    return UnavailableError("the agent answered with something else than a welcome");
  }
  ASSIGN_OR_RETURN(const local::Welcome welcome, local::BodyOf<local::Welcome>(message.frame));
  if (fcntl(fd_.get(), F_SETFL, O_NONBLOCK) != 0) {
    return ErrnoError(errno, "fcntl O_NONBLOCK");
  }
  auto& descriptors = message.descriptors;
  return Greeting{.welcome = welcome,
                  .page = std::move(descriptors[0]),
                  .state = std::move(descriptors[1]),
                  .bell = std::move(descriptors[2])};
}

void AgentSocket::Send(local::Frame frame) {
  unsent_.push_back(std::move(frame));
  Flush();
}

void AgentSocket::Flush() {
  while (!unsent_.empty()) {
    const local::Frame& frame = unsent_.front();
    if (send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      }
      // The end of the connection shows at Receive, which acts on it.
      unsent_.clear();
      return;
    }
    unsent_.pop_front();
  }
}

StatusOr<std::optional<local::Frame>> AgentSocket::Receive() {
  buffer_.resize(kLocalFrameBytesMax);
  ssize_t bytes = 0;
  do {
    bytes = recv(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return std::optional<local::Frame>();
  }
  if (bytes <= 0) {
    return UnavailableError("the agent closed the connection");
  }
  if (static_cast<size_t>(bytes) > buffer_.size()) {
    return InvalidArgumentError(
        StrCat("a frame of ", bytes, " bytes is over the limit of ", kLocalFrameBytesMax));
  }
  return std::optional<local::Frame>(local::Frame(buffer_.begin(), buffer_.begin() + bytes));
}

}  // namespace elastic::internal
