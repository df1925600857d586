// Giving state: a fetch is offered, waits for its go-ahead, is sent in pieces that never block.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "collectives/transport/context_impl.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

void Context::Impl::AskSource(Connection& connection) {
  const Hello& hello = connection.hello;
  StateSource::Answer answer;
  if (options.source != nullptr) {
    answer = options.source->Offer(hello.generation, hello.to);
  }
  switch (answer.verdict) {
    case StateSource::Verdict::kNever: return Refuse(connection, ReplyVerdict::kNoState);
    case StateSource::Verdict::kLater:
      if (connection.state != Connection::State::kKept &&
          CountIn({Connection::State::kWaiting, Connection::State::kKept}) >=
              options.limits.waiting_hellos) {
        return Refuse(connection, ReplyVerdict::kTooMany);
      }
      connection.state = Connection::State::kKept;
      return Watch(connection, EPOLLRDHUP);
    case StateSource::Verdict::kNow: break;
  }
  connection.granted = true;
  connection.view = answer.view;
  const ReplyBytes reply = Encode(Reply{.verdict = ReplyVerdict::kOffered,
                                        .held = answer.view.held,
                                        .bytes = answer.view.bytes.size()});
  const ssize_t sent =
      send(connection.socket.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(reply.size())) {
    return Drop(connection.id);
  }
  connection.state = Connection::State::kOffered;
  Watch(connection, EPOLLIN | EPOLLRDHUP);
}

void Context::Impl::ReadGoAhead(Connection& connection) {
  std::byte word{};
  const ssize_t got = recv(connection.socket.get(), &word, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got != 1 || word != kGoAhead) {
    return Drop(connection.id);
  }
  connection.state = Connection::State::kSending;
  Watch(connection, EPOLLOUT);
  SendState(connection);
}

void Context::Impl::SendState(Connection& connection) {
  const std::span<const std::byte> bytes = connection.view.bytes;
  // Bounded per call: the runtime's thread has other connections to serve and beats to write.
  const size_t end = std::min(bytes.size(), connection.sent + kTransferBytesPerProgress);
  while (connection.sent < end) {
    const ssize_t sent = send(connection.socket.get(), bytes.data() + connection.sent,
                              end - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        return;
      }
      return Drop(connection.id);
    }
    connection.sent += static_cast<size_t>(sent);
  }
  if (connection.sent == bytes.size()) {
    connection.state = Connection::State::kDraining;
    Watch(connection, EPOLLIN | EPOLLRDHUP);
  }
}

void Context::Impl::Drain(Connection& connection) {
  std::byte word{};
  const ssize_t got = recv(connection.socket.get(), &word, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  Drop(connection.id);  // it has everything, or never will
}

}  // namespace elastic::internal
