#include "collectives/transport/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "collectives/limits.h"

namespace elastic::internal {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> Parse(const Endpoint& endpoint) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, endpoint.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    address.bytes = sizeof *v4;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, endpoint.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    address.bytes = sizeof *v6;
    return address;
  }
  return std::nullopt;
}

uint16_t PortOf(const SocketAddress& address) {
  return address.storage.ss_family == AF_INET
             ? ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port)
             : ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

// BBR, a common default, paces loopback and LAN streams to a quarter of what cubic carries; the
// choice is per socket and needs no privilege. A kernel without cubic keeps its default. Buffers
// are left to the kernel's tuning, which a fixed size would switch off.
void Tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  constexpr char kCubic[] = "cubic";
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kCubic, sizeof kCubic - 1);
}

StatusOr<UniqueFd> NewSocket(const SocketAddress& address) {
  UniqueFd socket_fd(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid()) {
    const int error = errno;
    constexpr char kWhat[] = "cannot make a socket for a data connection";
    RETURN_IF_ERROR(ShortageOf(error, kWhat));
    return ErrnoError(error, kWhat);
  }
  Tune(socket_fd.get());
  return socket_fd;
}

}  // namespace

Status ShortageOf(int error, const std::string& what) {
  const std::string begin = what + ": " + std::strerror(error);
  rlimit limit{};
  switch (error) {
    case EMFILE:
      getrlimit(RLIMIT_NOFILE, &limit);
      return ResourceExhaustedError(begin + "; this process may have " +
                                    std::to_string(limit.rlim_cur) +
                                    ": raise the limit (ulimit -n)");
    case ENFILE:
      return ResourceExhaustedError(begin + ": raise the limit of this host (sysctl fs.file-max)");
    case EADDRNOTAVAIL:
      return ResourceExhaustedError(
          begin + ": no local port is free (sysctl net.ipv4.ip_local_port_range)");
    case ENOBUFS:
    case ENOMEM: return ResourceExhaustedError(begin + ": free memory on this host");
    default: return OkStatus();
  }
}

StatusOr<Listener> Listen(const std::string& address) {
  std::optional<SocketAddress> parsed = Parse({.address = address, .port = 0});
  if (!parsed) {
    return InvalidArgumentError("data listener needs a numeric IPv4 or IPv6 address, not '" +
                                address + "'");
  }
  ASSIGN_OR_RETURN(UniqueFd listener, NewSocket(*parsed));
  if (bind(listener.get(), parsed->get(), parsed->bytes) != 0) {
    return ErrnoError(errno, "cannot listen for data connections on " + address);
  }
  if (listen(listener.get(), kListenBacklog) != 0) {
    return ErrnoError(errno, "cannot listen for data connections on " + address);
  }
  if (getsockname(listener.get(), parsed->get(), &parsed->bytes) != 0) {
    return ErrnoError(errno, "cannot learn the data listener's port");
  }
  return Listener{.socket = std::move(listener),
                  .endpoint = {.address = address, .port = PortOf(*parsed)}};
}

StatusOr<UniqueFd> Dial(const Endpoint& to) {
  const std::optional<SocketAddress> address = Parse(to);
  if (!address || !to.valid()) {
    return InvalidArgumentError("a peer's data address must be numeric with a port, not '" +
                                ToString(to) + "'");
  }
  ASSIGN_OR_RETURN(UniqueFd socket_fd, NewSocket(*address));
  if (connect(socket_fd.get(), address->get(), address->bytes) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    const std::string what = "cannot connect to " + ToString(to);
    RETURN_IF_ERROR(ShortageOf(error, what));
    if (error == EACCES || error == EPERM) {  // a rule of this host forbids it
      return ErrnoError(error, what);
    }
    return UnavailableError(what + ": " + std::strerror(error));
  }
  return socket_fd;
}

Status DialResult(int socket_fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) {
    error = errno;
  }
  return error == 0 ? OkStatus() : UnavailableError(std::strerror(error));
}

UniqueFd Accept(int listener) {
  UniqueFd accepted(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.valid()) {
    Tune(accepted.get());
  }
  return accepted;
}

UniqueFd NewEventFd() { return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void RingEventFd(int fd) {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable.
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

void DrainEventFd(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof count);
}

UniqueFd NewEpoll() { return UniqueFd(epoll_create1(EPOLL_CLOEXEC)); }

}  // namespace elastic::internal
