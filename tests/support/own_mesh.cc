#include "tests/support/own_mesh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace elastic::internal::testing {

namespace {

constexpr std::chrono::seconds kLimit{30};  // for what a few milliseconds are enough for
constexpr char kKey[] = "rank 0";

Status Over() { return {Code::kAborted, "the generation is over"}; }

[[noreturn]] void Exit(int code, const std::string& why) {
  std::fprintf(stderr, "own_mesh: %s\n", why.c_str());
  _exit(code);
}

sockaddr_in AddressOf(const std::string& address, int port) {
  sockaddr_in socket_address{};
  socket_address.sin_family = AF_INET;
  socket_address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &socket_address.sin_addr) != 1) {
    Exit(64, "no IPv4 address: " + address);
  }
  return socket_address;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Status OwnMesh::Connect(std::chrono::microseconds put_delay) {
  peers_.clear();
  CheckEarlierKeys();
  return runtime_.rank() == 0 ? Listen(put_delay) : Dial();
}

// Each rank leaves a key with the generation's number in its name; nobody may find that of the one
// before, however soon it asks.
void OwnMesh::CheckEarlierKeys() {
  const uint32_t generation = runtime_.generation();
  std::string value;
  const Status earlier =
      runtime_.Get("of " + std::to_string(generation - 1), value, std::chrono::milliseconds(5));
  if (earlier.code() != Code::kDeadlineExceeded && earlier.code() != Code::kAborted) {
    Exit(kStaleExit, "an earlier generation's key answers " + earlier.message() + value);
  }
  (void)runtime_.Put("of " + std::to_string(generation), "here", kLimit);
}

Status OwnMesh::Listen(std::chrono::microseconds put_delay) {
  const std::vector<Member> members = runtime_.members();
  UniqueFd listener = NewSocket();
  sockaddr_in address = AddressOf(members.at(0).address, 0);
  socklen_t length = sizeof address;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 64) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    Exit(64, "no listening socket");
  }
  std::this_thread::sleep_for(put_delay);
  ELASTIC_RETURN_IF_ERROR(runtime_.Put(kKey,
                                       std::to_string(runtime_.generation()) + " " +
                                           runtime_.incarnation() + " " +
                                           std::to_string(ntohs(address.sin_port)),
                                       kLimit));
  peers_.resize(members.size() - 1);
  for (size_t come = 0; come < peers_.size(); ++come) {
    ELASTIC_RETURN_IF_ERROR(WaitFor(listener.get(), POLLIN));
    UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    uint32_t hello[2] = {0, 0};
    ELASTIC_RETURN_IF_ERROR(Receive(peer.get(), hello, sizeof hello));
    if (hello[0] != runtime_.generation() || hello[1] == 0 || hello[1] > peers_.size()) {
      Exit(kStaleExit, "a hello of generation " + std::to_string(hello[0]) + " in generation " +
                           std::to_string(runtime_.generation()));
    }
    peers_[hello[1] - 1] = std::move(peer);
  }
  return {};
}

Status OwnMesh::Dial() {
  std::string value;
  ELASTIC_RETURN_IF_ERROR(runtime_.Get(kKey, value, kLimit));
  const Member root = runtime_.members().at(0);
  const std::string expected = std::to_string(runtime_.generation()) + " " + root.incarnation + " ";
  if (value.compare(0, expected.size(), expected) != 0) {
    Exit(kStaleExit, "got '" + value + "', expected '" + expected + "PORT'");
  }
  UniqueFd peer = NewSocket();
  const sockaddr_in address = AddressOf(root.address, std::atoi(value.c_str() + expected.size()));
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return WaitForTheEnd();
  }
  ELASTIC_RETURN_IF_ERROR(WaitFor(peer.get(), POLLOUT));
  const uint32_t hello[2] = {runtime_.generation(), static_cast<uint32_t>(runtime_.rank())};
  ELASTIC_RETURN_IF_ERROR(Send(peer.get(), hello, sizeof hello));
  peers_.push_back(std::move(peer));
  return {};
}

Status OwnMesh::Sum(std::array<int64_t, 2>& sums) {
  if (runtime_.rank() == 0) {
    for (const UniqueFd& peer : peers_) {
      std::array<int64_t, 2> more{};
      ELASTIC_RETURN_IF_ERROR(Receive(peer.get(), more.data(), sizeof more));
      sums[0] += more[0];
      sums[1] += more[1];
    }
  }
  for (const UniqueFd& peer : peers_) {
    ELASTIC_RETURN_IF_ERROR(Send(peer.get(), sums.data(), sizeof sums));
    if (runtime_.rank() != 0) {
      ELASTIC_RETURN_IF_ERROR(Receive(peer.get(), sums.data(), sizeof sums));
    }
  }
  return {};
}

// What the generation's end rings for is looked at only when the socket has nothing.
Status OwnMesh::WaitFor(int fd, short events) {
  while (true) {
    pollfd waits[2] = {{fd, events, 0}, {runtime_.event_fd(), POLLIN, 0}};
    const int ready = poll(waits, 2, std::chrono::milliseconds(kLimit).count());
    if (ready == 0) {
      Exit(73, "no news for 30 s");
    }
    if (waits[0].revents != 0) {
      return {};
    }
    Event event = Event::kContinue;
    ELASTIC_RETURN_IF_ERROR(runtime_.Poll(event));
    if (event == Event::kRestore) {
      return Over();
    }
  }
}

// A connection broke: the runtime says so soon.
Status OwnMesh::WaitForTheEnd() { return WaitFor(-1, 0); }

Status OwnMesh::Send(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      bytes -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      ELASTIC_RETURN_IF_ERROR(WaitFor(fd, POLLOUT));
    } else {
      return WaitForTheEnd();
    }
  }
  return {};
}

Status OwnMesh::Receive(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got > 0) {
      at += got;
      bytes -= static_cast<size_t>(got);
    } else if (got < 0 && errno == EAGAIN) {
      ELASTIC_RETURN_IF_ERROR(WaitFor(fd, POLLIN));
    } else {
      return WaitForTheEnd();
    }
  }
  return {};
}

}  // namespace elastic::internal::testing
