// From accept to a hello that is taken, kept waiting or refused.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/transport/context_impl.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

void Context::Impl::AcceptAll() {
  for (;;) {
    UniqueFd accepted = Accept(listener.socket.get());
    if (!accepted.valid()) {
      if (const Status shortage = ShortageOf(errno, "cannot accept a data connection");
          !shortage.ok()) {
        // The listener stays readable: without a pause the thread would spin on it.
        epoll_ctl(epoll.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
        accept_again = Now() + kAcceptPause;
        if (!std::exchange(told_of_shortage, true)) {
          LogWarning(shortage.message(), "; trying again");
        }
        FailAccepting(shortage);
      }
      return;
    }
    told_of_shortage = false;
    if (CountIn({Connection::State::kReadingHello}) >= options.limits.unread_hellos) {
      LogWarning("closing a data connection: ", options.limits.unread_hellos,
                 " others have not said yet who they are");
      continue;
    }
    Connection& connection =
        Add(std::move(accepted), Connection::State::kReadingHello, EPOLLIN | EPOLLRDHUP);
    connection.deadline = Now() + options.limits.hello_read;
    ReadHello(connection);
  }
}

void Context::Impl::ReadHello(Connection& connection) {
  const ssize_t got = recv(connection.socket.get(), connection.hello_bytes.data() + connection.got,
                           kHelloBytes - connection.got, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    return Drop(connection.id);
  }
  connection.got += static_cast<size_t>(got);
  if (connection.got < kHelloBytes) {
    return;
  }
  std::optional<Hello> hello = DecodeHello(connection.hello_bytes);
  if (!hello) {
    LogWarning("closing a data connection that is not of this program or version");
    return Drop(connection.id);
  }
  connection.hello = std::move(*hello);
  HelloCame(connection);
}

void Context::Impl::HelloCame(Connection& connection) {
  const Hello& hello = connection.hello;
  connection.deadline.reset();
  if (hello.job_id != options.job_id || hello.job_nonce != options.job_nonce) {
    return Refuse(connection, ReplyVerdict::kWrongJob);
  }
  if (hello.generation.number <= cancelled) {
    return Refuse(connection, ReplyVerdict::kOverThere);
  }
  if (hello.purpose == Purpose::kFetch) {
    return AskSource(connection);
  }
  if (hello.to != options.self) {
    return Refuse(connection, ReplyVerdict::kWrongPeer);
  }
  if (Assembly* assembly = AssemblyOf(connection)) {
    return MatchHello(connection, *assembly);
  }
  const AssemblyKey key{hello.generation.number, hello.channel};
  if (const auto out = handed_out.find(key); out != handed_out.end()) {
    // Its caller has lost this edge. It may have it again as long as nobody here has used the mesh.
    if (hello.generation != out->second.roster.id) {
      return Refuse(connection, ReplyVerdict::kOverThere);
    }
    if (!ExpectedCaller(out->second, hello.from)) {
      return Refuse(connection, ReplyVerdict::kWrongPeer);
    }
    if (Assembly* assembly = Reclaim(key)) {
      return MatchHello(connection, *assembly);
    }
    return Refuse(connection, ReplyVerdict::kInUse);
  }
  if (CountIn({Connection::State::kWaiting, Connection::State::kKept}) >=
      options.limits.waiting_hellos) {
    return Refuse(connection, ReplyVerdict::kTooMany);
  }
  connection.state = Connection::State::kWaiting;
  connection.deadline = Now() + options.limits.hello_wait;
  Watch(connection, EPOLLRDHUP);
}

void Context::Impl::Refuse(Connection& connection, ReplyVerdict verdict) {
  LogInfo("refused a data connection of worker ", ToString(connection.hello.from),
          " for generation ", ToString(connection.hello.generation), ": ", Describe(verdict));
  const ReplyBytes reply = Encode(Reply{.verdict = verdict});
  // 48 bytes into an empty socket buffer; whether the caller still listens does not matter.
  (void)!send(connection.socket.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  Drop(connection.id);
}

size_t Context::Impl::CountIn(std::initializer_list<Connection::State> states) const {
  return static_cast<size_t>(std::ranges::count_if(connections, [&](const auto& item) {
    return std::ranges::find(states, item.second->state) != states.end();
  }));
}

}  // namespace elastic::internal
