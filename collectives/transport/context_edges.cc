// Meshes: dialling to higher ranks, matching the hellos of lower ones, handing out.

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/schedule/schedule.h"
#include "collectives/transport/context_impl.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

std::string Name(const RosterEntry& entry) {
  return StrCat("rank ", entry.rank, " (worker ", ToString(entry.incarnation), " at ",
                ToString(entry.data), ")");
}

std::vector<int> PeersOf(int rank, int size) {
  return EdgePeers({.rank = rank, .size = size}, kFullMeshMax);
}

}  // namespace

bool Context::Impl::IsPeer(const Assembly& assembly, int rank) {
  return std::ranges::binary_search(PeersOf(assembly.rank, assembly.roster.size()), rank);
}

// The lower rank dials.
const RosterEntry* Context::Impl::ExpectedCaller(const Assembly& assembly, WorkerIncarnation from) {
  const RosterEntry* entry = assembly.roster.Find(from);
  return entry != nullptr && entry->rank < assembly.rank && IsPeer(assembly, entry->rank) ? entry
                                                                                          : nullptr;
}

void Context::Impl::Connect(const Roster& roster, Channel channel, MeshDone done) {
  const RosterEntry* self = roster.Find(options.self);
  const auto fail = [&](Status status) {
    Call(roster.id.number, [done, status = std::move(status)] {
      done(tl::unexpected(Failure{.status = status, .peer = std::nullopt}));
    });
  };
  if (self == nullptr) {
    return fail(InvalidArgumentError(StrCat("worker ", ToString(options.self),
                                            " is no member of generation ", ToString(roster.id))));
  }
  if (roster.id.number <= cancelled) {
    return fail(AbortedError(StrCat("generation ", ToString(roster.id), " is over")));
  }
  const AssemblyKey key{roster.id.number, channel};
  const int size = roster.size();
  const std::vector<int> peers = PeersOf(self->rank, size);
  ELASTIC_CHECK(!assemblies.contains(key));
  Assembly& assembly = assemblies[key];
  assembly.roster = roster;
  assembly.rank = self->rank;
  assembly.edges.resize(static_cast<size_t>(size));
  assembly.missing = static_cast<int>(peers.size());
  assembly.done = std::move(done);
  if (assembly.missing == 0) {
    Finish(key);
    const std::function<void()> call = std::move(calls.back().second);
    calls.pop_back();
    return call();
  }
  for (const int peer : peers) {
    if (peer > assembly.rank) {
      DialPeer(assembly, channel, peer);
    }
  }
  MatchWaiting(key);
}

void Context::Impl::RetryEdges(GenerationNumber number) {
  for (auto& [key, assembly] : assemblies) {
    if (key.first != number || !std::exchange(assembly.failed, false)) {
      continue;
    }
    for (const int peer : PeersOf(assembly.rank, assembly.roster.size())) {
      const Edge& edge = assembly.edges[static_cast<size_t>(peer)];
      if (edge.up != 0 || edge.dialled != 0) {
        continue;
      }
      if (peer > assembly.rank) {
        DialPeer(assembly, key.second, peer);
      } else if (edge.broke) {
        TellFailure(assembly, peer,
                    UnavailableError("it broke, and is not dialled again from there"),
                    Blame::kPeer);
      }
    }
  }
}

void Context::Impl::MatchWaiting(AssemblyKey key) {
  std::vector<uint64_t> waiting;
  for (const auto& [id, connection] : connections) {
    if (connection->state == Connection::State::kWaiting &&
        connection->hello.generation.number == key.first &&
        connection->hello.channel == key.second) {
      waiting.push_back(id);
    }
  }
  // The newest hello of a caller first: it has given the ones before up.
  std::ranges::sort(waiting, std::ranges::greater(),
                    [this](uint64_t id) { return connections.at(id)->hello.attempt; });
  for (const uint64_t id : waiting) {
    Connection& connection = *connections.at(id);
    if (Assembly* assembly = AssemblyOf(connection)) {
      MatchHello(connection, *assembly);
    } else {  // complete meanwhile
      Refuse(connection, ReplyVerdict::kOverThere);
    }
  }
}

void Context::Impl::DialPeer(Assembly& assembly, Channel channel, int peer) {
  const RosterEntry* entry = assembly.roster.AtRank(peer);
  ELASTIC_CHECK(entry != nullptr);
  Edge& edge = assembly.edges[static_cast<size_t>(peer)];
  StatusOr<UniqueFd> socket = Dial(entry->data);
  if (!socket.ok()) {
    const bool there = socket.error().code() == StatusCode::kUnavailable;
    return TellFailure(assembly, peer, socket.status(), there ? Blame::kPeer : Blame::kNobody);
  }
  Connection& connection = Add(std::move(*socket), Connection::State::kDialling, EPOLLOUT);
  connection.rank = peer;
  connection.hello = {.purpose = Purpose::kEdge,
                      .channel = channel,
                      .job_id = options.job_id,
                      .job_nonce = options.job_nonce,
                      .generation = assembly.roster.id,
                      .from = options.self,
                      .to = entry->incarnation,
                      .attempt = edge.attempt++};
  connection.deadline = Now() + options.limits.dial;
  edge.dialled = connection.id;
}

void Context::Impl::SendHello(Connection& connection) {
  if (const Status status = DialResult(connection.socket.get()); !status.ok()) {
    return Ended(connection, status.message());
  }
  const HelloBytes hello = Encode(connection.hello);
  const ssize_t sent =
      send(connection.socket.get(), hello.data(), hello.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(hello.size())) {  // an empty buffer takes all of it or is broken
    return Ended(connection, "cannot send the hello");
  }
  connection.state = Connection::State::kAwaitingReply;
  connection.got = 0;
  connection.deadline.reset();
  if (connection.hello.purpose == Purpose::kEdge) {
    connection.deadline = Now() + options.limits.hello_wait;
  }
  Watch(connection, EPOLLIN | EPOLLRDHUP);
}

void Context::Impl::ReadReply(Connection& connection) {
  const ssize_t got = recv(connection.socket.get(), connection.reply_bytes.data() + connection.got,
                           kReplyBytes - connection.got, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    return Ended(connection, got == 0 ? "end of stream before the answer" : std::strerror(errno));
  }
  connection.got += static_cast<size_t>(got);
  if (connection.got < kReplyBytes) {
    return;
  }
  const std::optional<Reply> reply = DecodeReply(connection.reply_bytes);
  if (!reply) {
    return Ended(connection, "an answer that is not of this program or version");
  }
  connection.deadline.reset();
  if (connection.hello.purpose == Purpose::kFetch) {
    return FetchReply(connection, *reply);
  }
  EdgeReply(connection, *reply);
}

void Context::Impl::EdgeReply(Connection& connection, const Reply& reply) {
  Assembly* assembly = AssemblyOf(connection);
  ELASTIC_CHECK(assembly != nullptr);
  switch (reply.verdict) {
    case ReplyVerdict::kAccepted: return EdgeUp(connection, *assembly);
    case ReplyVerdict::kOverThere:  // it knows better than we do: nobody's fault
      FailEdge(connection, AbortedError(std::string(Describe(reply.verdict))), Blame::kNobody);
      break;
    default:  // somebody else has its address, so it is gone; or it cannot take this connection
      FailEdge(connection, UnavailableError(std::string(Describe(reply.verdict))), Blame::kPeer);
      break;
  }
  Drop(connection.id);
}

Context::Impl::Assembly* Context::Impl::AssemblyOf(const Connection& connection) {
  const auto found =
      assemblies.find({connection.hello.generation.number, connection.hello.channel});
  return found == assemblies.end() ? nullptr : &found->second;
}

// A hello of a lower rank for a mesh that is being made here.
void Context::Impl::MatchHello(Connection& connection, Assembly& assembly) {
  const Hello& hello = connection.hello;
  if (hello.generation != assembly.roster.id) {
    return Refuse(connection, ReplyVerdict::kOverThere);
  }
  const RosterEntry* from = ExpectedCaller(assembly, hello.from);
  if (from == nullptr) {
    return Refuse(connection, ReplyVerdict::kWrongPeer);
  }
  Edge& edge = assembly.edges[static_cast<size_t>(from->rank)];
  if (hello.attempt < edge.attempt) {
    return Drop(connection.id);  // overtaken by a newer one of the same caller
  }
  edge.attempt = hello.attempt;
  connection.rank = from->rank;
  if (edge.up != 0) {  // it dialled again, so it has given the first one up
    Drop(std::exchange(edge.up, 0));
    ++assembly.missing;
  }
  const ReplyBytes reply = Encode(Reply{.verdict = ReplyVerdict::kAccepted});
  const ssize_t sent =
      send(connection.socket.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(reply.size())) {
    edge.broke = true;
    FailEdge(connection, UnavailableError("it hung up before the answer"), Blame::kPeer);
    return Drop(connection.id);
  }
  EdgeUp(connection, assembly);
}

void Context::Impl::EdgeUp(Connection& connection, Assembly& assembly) {
  connection.state = Connection::State::kUp;
  connection.deadline.reset();
  // Not for input: a peer whose mesh is complete may send at once, and that is not for us.
  Watch(connection, EPOLLRDHUP);
  Edge& edge = assembly.edges[static_cast<size_t>(connection.rank)];
  edge.up = connection.id;
  edge.dialled = 0;
  edge.broke = false;
  --assembly.missing;
  if (assembly.missing == 0) {
    Finish({connection.hello.generation.number, connection.hello.channel});
  }
}

// What failed will not be up by itself: the connection is no edge any more, and its end is told.
void Context::Impl::FailEdge(const Connection& connection, const Status& status, Blame blame) {
  Assembly* assembly = AssemblyOf(connection);
  if (assembly == nullptr) {
    return;
  }
  Edge& edge = assembly->edges[static_cast<size_t>(connection.rank)];
  if (edge.up == connection.id) {
    edge.up = 0;
    edge.broke = true;
    ++assembly->missing;
  } else if (edge.dialled == connection.id) {
    edge.dialled = 0;
  }
  TellFailure(*assembly, connection.rank, status, blame);
}

// Only the first failure of a mesh is told until its owner wants another try; what stands stays
// open until Cancel. Closing it here would look to the healthy peers as if this process had died,
// and they would accuse it (P18).
void Context::Impl::TellFailure(Assembly& assembly, int rank, const Status& status, Blame blame) {
  if (std::exchange(assembly.failed, true)) {
    return;
  }
  const RosterEntry* entry = assembly.roster.AtRank(rank);
  ELASTIC_CHECK(entry != nullptr);
  Failure failure{
      .status = Status(status.code(), StrCat("no connection to ", Name(*entry), " for generation ",
                                             ToString(assembly.roster.id), ": ", status.message())),
      .peer = std::nullopt};
  if (blame == Blame::kPeer) {
    failure.peer = entry->incarnation;
  }
  Call(assembly.roster.id.number,
       [done = assembly.done, failure] { done(tl::unexpected(failure)); });
}

// Callers wait in the listener's queue, and nothing shows to which mesh they belong.
void Context::Impl::FailAccepting(const Status& status) {
  for (auto& [key, assembly] : assemblies) {
    for (int rank = 0; rank < assembly.rank; ++rank) {
      if (IsPeer(assembly, rank) && assembly.edges[static_cast<size_t>(rank)].up == 0) {
        TellFailure(assembly, rank, status, Blame::kNobody);
        break;
      }
    }
  }
}

}  // namespace elastic::internal
