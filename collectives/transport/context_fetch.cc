// Taking state: one holder, one connection, verified before anybody sees it.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/transport/context_impl.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

void Context::Impl::Fetch(const Roster& roster, const RosterEntry& holder,
                          std::function<void(Offer)> offered,
                          std::function<void(StatusOr<Held>)> done) {
  if (fetching) {
    Drop(fetching->connection);  // its caller has turned to another holder
  }
  fetching.emplace(Fetching{.roster = roster,
                            .holder = holder,
                            .connection = 0,
                            .offered = std::move(offered),
                            .done = std::move(done),
                            .offer = {},
                            .target = {},
                            .got = 0});
  if (roster.id.number <= cancelled) {
    return FailFetch(AbortedError(StrCat("generation ", ToString(roster.id), " is over")));
  }
  StatusOr<UniqueFd> socket = Dial(holder.data);
  if (!socket.ok()) {
    return FailFetch(socket.status());
  }
  Connection& connection = Add(std::move(*socket), Connection::State::kDialling, EPOLLOUT);
  connection.hello = {.purpose = Purpose::kFetch,
                      .channel = Channel::kMain,
                      .job_id = options.job_id,
                      .job_nonce = options.job_nonce,
                      .generation = roster.id,
                      .from = options.self,
                      .to = holder.incarnation};
  connection.deadline = Now() + options.limits.dial;
  fetching->connection = connection.id;
}

void Context::Impl::FetchReply(Connection& connection, const Reply& reply) {
  const std::string holder = StrCat("worker ", ToString(fetching->holder.incarnation), " at ",
                                    ToString(fetching->holder.data));
  if (reply.verdict != ReplyVerdict::kOffered) {
    const std::string message =
        StrCat(holder, " does not serve the state of generation ", ToString(fetching->roster.id),
               ": ", Describe(reply.verdict));
    return FailFetch(reply.verdict == ReplyVerdict::kOverThere ? AbortedError(message)
                                                               : UnavailableError(message));
  }
  connection.state = Connection::State::kChoosing;
  Watch(connection, EPOLLRDHUP);
  fetching->offer = {.held = reply.held, .bytes = static_cast<size_t>(reply.bytes)};
  Call(fetching->roster.id.number, [this, id = connection.id] {
    if (fetching && fetching->connection == id) {
      // A copy: the callback may end this fetch.
      const std::function<void(Offer)> offered = fetching->offered;
      offered(fetching->offer);
    }
  });
}

void Context::Impl::AcceptOffer(std::span<std::byte> target) {
  const auto found = fetching ? connections.find(fetching->connection) : connections.end();
  if (found == connections.end() || found->second->state != Connection::State::kChoosing) {
    return;  // the offer has ended meanwhile; `done` tells, or Cancel was called
  }
  Connection& connection = *found->second;
  if (target.size() < fetching->offer.bytes) {
    return FailFetch(InvalidArgumentError(StrCat("the offered state has ", fetching->offer.bytes,
                                                 " bytes, the memory for it ", target.size())));
  }
  fetching->target = target.first(fetching->offer.bytes);
  if (send(connection.socket.get(), &kGoAhead, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
    return Ended(connection, "it hung up after its offer");
  }
  connection.state = Connection::State::kReceiving;
  Watch(connection, EPOLLIN | EPOLLRDHUP);
  if (fetching->target.empty()) {
    StateCame();
  }
}

void Context::Impl::ReceiveState(Connection& connection) {
  size_t budget = kTransferBytesPerProgress;
  while (budget > 0) {
    const std::span<std::byte> room = fetching->target.subspan(fetching->got);
    const ssize_t got =
        recv(connection.socket.get(), room.data(), std::min(room.size(), budget), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (got <= 0) {
      return Ended(connection, StrCat(got == 0 ? "end of stream" : std::strerror(errno), " after ",
                                      fetching->got, " of ", fetching->target.size(), " bytes"));
    }
    fetching->got += static_cast<size_t>(got);
    budget -= static_cast<size_t>(got);
    if (fetching->got == fetching->target.size()) {
      return StateCame();
    }
  }
}

void Context::Impl::StateCame() {
  const Held held = fetching->offer.held;
  const uint64_t digest = HashBytes(fetching->target.data(), fetching->target.size());
  if (digest != held.digest) {
    return FailFetch(DataLossError(StrCat(
        "state ", ToString(held.version), " of worker ", ToString(fetching->holder.incarnation),
        " came with digest ", std::hex, digest, ", but was offered with ", held.digest)));
  }
  Call(fetching->roster.id.number, [done = std::move(fetching->done), held] { done(held); });
  const uint64_t connection = fetching->connection;
  fetching.reset();
  Drop(connection);
}

void Context::Impl::FailFetch(Status status) {
  Call(fetching->roster.id.number,
       [done = std::move(fetching->done), status = std::move(status)] { done(status); });
  const uint64_t connection = fetching->connection;
  fetching.reset();
  Drop(connection);
}

}  // namespace elastic::internal
