#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "collectives/limits.h"
#include "collectives/scratch.h"
#include "collectives/transport/context.h"
#include "collectives/transport/mesh.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/wire.h"

namespace elastic::internal {

// One connection from accept or dial until it becomes an edge of a mesh or ends. What may happen to
// it is its state; each state watches only what it can use, so that the level-triggered set of the
// context never reports the same thing for ever.
struct Connection {
  enum class State : uint8_t {
    // accepted
    kReadingHello,  // -> kWaiting, kUp, kKept, kOffered, or refused
    kWaiting,       // edge hello of a generation that this side was not told of -> kUp
    kKept,          // fetch that the source answered with kLater -> kOffered
    kOffered,       // offer sent -> kSending at the go-ahead
    kSending,       // -> kDraining when the last byte is with the kernel
    kDraining,      // closing now could reset the connection under the last bytes; -> end
    // dialled
    kDialling,       // -> kAwaitingReply
    kAwaitingReply,  // -> kUp (edge), kChoosing (fetch)
    kChoosing,       // offer received, its owner has not named the memory yet -> kReceiving
    kReceiving,      // -> end
    // both
    kUp,  // a finished edge whose mesh still misses others
  };
  uint64_t id = 0;
  State state = State::kReadingHello;
  UniqueFd socket;
  Hello hello;
  HelloBytes hello_bytes{};
  ReplyBytes reply_bytes{};
  size_t got = 0;                   // of hello or reply
  std::optional<Instant> deadline;  // of the present state
  int rank = -1;                    // of the peer, for dialled and finished edges
  bool granted = false;             // the source said kNow: it is owed a Done
  StateView view;                   // kOffered, kSending
  size_t sent = 0;
};

struct Context::Impl {
  // One edge of a mesh. The lower rank dials it again when it fails, the higher one waits for that.
  struct Edge {
    uint64_t up = 0;       // the connection; 0: none
    uint64_t dialled = 0;  // the one on its way to be up
    // Dialled: of the next hello. Accepted: of the newest one. An older hello may be overtaken by a
    // newer one, and its caller has given it up.
    uint32_t attempt = 0;
    bool broke = false;  // accepted, and ended since
  };
  // A mesh in the making.
  struct Assembly {
    Roster roster;
    int rank = 0;
    std::vector<Edge> edges;  // per rank
    int missing = 0;
    bool failed = false;  // `done` was told so; what fails until the next try is not told
    MeshDone done;
  };
  using AssemblyKey = std::pair<GenerationNumber, Channel>;

  struct Fetching {
    Roster roster;
    RosterEntry holder;
    uint64_t connection = 0;
    std::function<void(Offer)> offered;
    std::function<void(StatusOr<Held>)> done;
    Offer offer;
    std::span<std::byte> target;
    size_t got = 0;
  };

  Impl(Options options_in, Listener listener_in);

  // context.cc: plumbing
  Status Start();
  void Progress();
  void Dispatch(Connection& connection, uint32_t events);
  void Expire(Instant now);
  std::optional<Instant> NextDeadline() const;
  void Cancel(GenerationNumber up_to);
  void Call(GenerationNumber number, std::function<void()> call);
  Connection& Add(UniqueFd socket, Connection::State state, uint32_t events);
  void Watch(const Connection& connection, uint32_t events);
  void Drop(uint64_t id);
  void Ended(Connection& connection, const std::string& how);

  // context_accept.cc: from accept to a hello that is taken, kept or refused
  void AcceptAll();
  void ReadHello(Connection& connection);
  void HelloCame(Connection& connection);
  void Refuse(Connection& connection, ReplyVerdict verdict);
  size_t CountIn(std::initializer_list<Connection::State> states) const;

  // context_edges.cc: meshes
  void Connect(const Roster& roster, Channel channel, MeshDone done);
  void RetryEdges(GenerationNumber number);
  void DialPeer(Assembly& assembly, Channel channel, int peer);
  void SendHello(Connection& connection);
  void ReadReply(Connection& connection);
  void EdgeReply(Connection& connection, const Reply& reply);
  void MatchWaiting(AssemblyKey key);
  void MatchHello(Connection& connection, Assembly& assembly);
  void EdgeUp(Connection& connection, Assembly& assembly);
  enum class Blame : uint8_t { kPeer, kNobody };
  void FailEdge(const Connection& connection, const Status& status, Blame blame);
  void TellFailure(Assembly& assembly, int rank, const Status& status, Blame blame);
  void FailAccepting(const Status& status);
  Assembly* AssemblyOf(const Connection& connection);
  static bool IsPeer(const Assembly& assembly, int rank);
  static const RosterEntry* ExpectedCaller(const Assembly& assembly, WorkerIncarnation from);

  // context_meshes.cc: handing meshes out, and taking them back
  void Finish(AssemblyKey key);
  UniqueFd HandOut(uint64_t id, AssemblyKey key);
  Assembly* Reclaim(AssemblyKey key);

  // context_serve.cc: giving state
  void AskSource(Connection& connection);
  void ReadGoAhead(Connection& connection);
  void SendState(Connection& connection);
  void Drain(Connection& connection);

  // context_fetch.cc: taking state
  void Fetch(const Roster& roster, const RosterEntry& holder, std::function<void(Offer)> offered,
             std::function<void(StatusOr<Held>)> done);
  void FetchReply(Connection& connection, const Reply& reply);
  void AcceptOffer(std::span<std::byte> target);
  void ReceiveState(Connection& connection);
  void StateCame();
  void FailFetch(Status status);

  Options options;
  const Listener listener;
  const UniqueFd epoll;
  const UniqueFd kick;  // makes event_fd() readable when a callback is due
  const std::shared_ptr<ScratchPool> scratch;

  std::map<uint64_t, std::unique_ptr<Connection>> connections;
  uint64_t next_id = 1;
  std::map<AssemblyKey, Assembly> assemblies;
  std::map<AssemblyKey, Assembly> handed_out;  // their connections are the owners' of the meshes
  std::map<uint64_t, AssemblyKey> watched;     // connections of those, for their end
  std::vector<AssemblyKey> broken;             // of those, seen in this Progress
  std::optional<Fetching> fetching;
  GenerationNumber cancelled;
  std::optional<Instant> accept_again;  // out of descriptors: not before
  bool told_of_shortage = false;        // until a connection is accepted again
  std::deque<std::pair<GenerationNumber, std::function<void()>>> calls;
};

}  // namespace elastic::internal
