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

}  // namespace

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
  const Position at{.rank = self->rank, .size = size};
  const std::vector<int> peers = EdgePeers(at, kFullMeshMax);
  ELASTIC_CHECK(!assemblies.contains(key));
  Assembly& assembly = assemblies[key];
  assembly.roster = roster;
  assembly.rank = self->rank;
  assembly.up.resize(static_cast<size_t>(size), 0);
  assembly.missing = static_cast<int>(peers.size());
  assembly.done = std::move(done);
  if (assembly.missing == 0) {
    Finish(key);
    const std::function<void()> call = std::move(calls.back().second);
    calls.pop_back();
    return call();
  }
  for (const int peer : peers) {
    if (peer > at.rank) {
      DialPeer(assembly, channel, peer);
    }
  }
  MatchWaiting(key);
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
  for (const uint64_t id : waiting) {
    Connection& connection = *connections.at(id);
    if (Assembly* assembly = AssemblyOf(connection)) {
      MatchHello(connection, *assembly);
    } else {  // complete meanwhile
      Refuse(connection, ReplyVerdict::kOverThere);
    }
  }
}

void Context::Impl::DialPeer(const Assembly& assembly, Channel channel, int peer) {
  const RosterEntry* entry = assembly.roster.AtRank(peer);
  ELASTIC_CHECK(entry != nullptr);
  StatusOr<UniqueFd> socket = Dial(entry->data);
  Connection& connection =
      Add(socket.ok() ? std::move(*socket) : UniqueFd(), Connection::State::kDialling, EPOLLOUT);
  connection.rank = peer;
  connection.hello = {.purpose = Purpose::kEdge,
                      .channel = channel,
                      .job_id = options.job_id,
                      .job_nonce = options.job_nonce,
                      .generation = assembly.roster.id,
                      .from = options.self,
                      .to = entry->incarnation};
  connection.deadline = Now() + options.limits.dial;
  if (!socket.ok()) {
    FailEdge(connection, socket.status(), socket.error().code() == StatusCode::kUnavailable);
    Drop(connection.id);
  }
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
    case ReplyVerdict::kWrongJob:
    case ReplyVerdict::kWrongPeer:  // somebody else has its address: the worker is gone
      FailEdge(connection, UnavailableError(std::string(Describe(reply.verdict))), true);
      break;
    case ReplyVerdict::kOverThere:  // it knows better than we do: nobody's fault
      FailEdge(connection, AbortedError(std::string(Describe(reply.verdict))), false);
      break;
    default:
      FailEdge(connection, ResourceExhaustedError(std::string(Describe(reply.verdict))), false);
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
  const RosterEntry* from = assembly.roster.Find(hello.from);
  const std::vector<int> peers =
      EdgePeers({.rank = assembly.rank, .size = assembly.roster.size()}, kFullMeshMax);
  if (from == nullptr || from->rank >= assembly.rank ||
      !std::ranges::binary_search(peers, from->rank)) {
    return Refuse(connection, ReplyVerdict::kWrongPeer);
  }
  connection.rank = from->rank;
  uint64_t& up = assembly.up[static_cast<size_t>(from->rank)];
  if (up != 0) {  // it dialled again, so it has given the first one up
    Drop(up);
    up = 0;
    ++assembly.missing;
  }
  const ReplyBytes reply = Encode(Reply{.verdict = ReplyVerdict::kAccepted});
  const ssize_t sent =
      send(connection.socket.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(reply.size())) {
    FailEdge(connection, UnavailableError("it hung up before the answer"), true);
    return Drop(connection.id);
  }
  EdgeUp(connection, assembly);
}

void Context::Impl::EdgeUp(Connection& connection, Assembly& assembly) {
  connection.state = Connection::State::kUp;
  connection.deadline.reset();
  // Not for input: a peer whose mesh is complete may send at once, and that is not for us.
  Watch(connection, EPOLLRDHUP);
  assembly.up[static_cast<size_t>(connection.rank)] = connection.id;
  --assembly.missing;
  if (assembly.missing == 0 && assembly.done) {
    Finish({connection.hello.generation.number, connection.hello.channel});
  }
}

void Context::Impl::Finish(AssemblyKey key) {
  const auto found = assemblies.find(key);
  Assembly assembly = std::move(found->second);
  assemblies.erase(found);
  handed_out.insert(key);
  Mesh::Options made{.generation = assembly.roster.id,
                     .channel = key.second,
                     .rank = assembly.rank,
                     .edges = {},
                     .scratch = scratch};
  for (int rank = 0; rank < assembly.roster.size(); ++rank) {
    MeshEdge edge;
    edge.peer = assembly.roster.AtRank(rank)->incarnation;
    if (const uint64_t id = assembly.up[static_cast<size_t>(rank)]; id != 0) {
      Connection& connection = *connections.at(id);
      epoll_ctl(epoll.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
      edge.socket = std::move(connection.socket);
      connections.erase(id);
    }
    made.edges.push_back(std::move(edge));
  }
  // std::function must be copyable, a mesh is not; nobody else keeps the pointer.
  auto mesh = std::make_shared<std::unique_ptr<Mesh>>(std::make_unique<Mesh>(std::move(made)));
  Call(key.first, [done = std::move(assembly.done), mesh] { done(std::move(*mesh)); });
}

// The first failure of a mesh is told; what stands stays open until Cancel. Closing it here would
// look to the healthy peers as if this process had died, and they would accuse it (P18).
void Context::Impl::FailEdge(const Connection& connection, Status status, bool peer_at_fault) {
  Assembly* assembly = AssemblyOf(connection);
  if (assembly == nullptr || !assembly->done) {
    return;
  }
  const RosterEntry* entry = assembly->roster.AtRank(connection.rank);
  ELASTIC_CHECK(entry != nullptr);
  Failure failure{.status = Status(status.code(),
                                   StrCat("no connection to ", Name(*entry), " for generation ",
                                          ToString(assembly->roster.id), ": ", status.message())),
                  .peer = std::nullopt};
  if (peer_at_fault) {
    failure.peer = entry->incarnation;
  }
  Call(assembly->roster.id.number,
       [done = std::exchange(assembly->done, nullptr), failure] { done(tl::unexpected(failure)); });
}

}  // namespace elastic::internal
