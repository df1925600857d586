// Edges that fail for other reasons than a death, and are made anew.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "collectives/testing/group.h"
#include "collectives/testing/no_descriptor_left.h"
#include "collectives/transport/wire.h"
#include "rendezvous/base/real_clock.h"

using namespace elastic::internal;
using Catch::Matchers::Contains;

namespace {

using Result = tl::expected<std::unique_ptr<Mesh>, Context::Failure>;

// One rank: its context, and the owner of what comes out of it.
class Rank {
 public:
  explicit Rank(int rank, Context::Limits limits = {}) {
    auto made =
        Context::Create({.listen_address = "127.0.0.1",
                         .job_id = "test-job",
                         .job_nonce = kTestNonce,
                         .self = TestWorker(rank),
                         .give_back = [this](const GenerationId&, Channel) { return GiveBack(); },
                         .limits = limits});
    REQUIRE(made.ok());
    context_ = std::move(*made);
  }
  void Connect(const Roster& roster) {
    generation_ = roster.id.number;
    context_->Connect(roster, Channel::kMain, [this](Result result) {
      if (result) {
        mesh = std::move(*result);
      } else {
        failures.push_back(result.error());
      }
    });
  }
  void Retry() { context_->RetryEdges(generation_); }
  Context& context() { return *context_; }

  std::unique_ptr<Mesh> mesh;
  std::vector<Context::Failure> failures;
  bool used = false;

 private:
  std::unique_ptr<Mesh> GiveBack() { return used ? nullptr : std::move(mesh); }

  std::unique_ptr<Context> context_;
  GenerationNumber generation_;
};

// A peer that the test plays: its port is its own from the start, whether it listens or not.
class PlayedPeer {
 public:
  PlayedPeer() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(socket_.get(), at, bytes) == 0);
    REQUIRE(getsockname(socket_.get(), at, &bytes) == 0);
    endpoint = {.address = "127.0.0.1", .port = ntohs(address.sin_port)};
  }
  void Listen(int backlog = 8) { REQUIRE(listen(socket_.get(), backlog) == 0); }
  UniqueFd Accept() {
    UniqueFd accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(accepted.valid());
    return accepted;
  }
  // Accepts an edge as a member does; blocks, so its caller must have been dialled and pumped.
  UniqueFd AcceptEdge(Context& caller) {
    UniqueFd edge = Accept();
    for (pollfd wait{edge.get(), POLLIN, 0}; poll(&wait, 1, 0) == 0;) {
      caller.Progress();
    }
    HelloBytes bytes;
    REQUIRE(recv(edge.get(), bytes.data(), bytes.size(), MSG_WAITALL) == kHelloBytes);
    REQUIRE(DecodeHello(bytes));
    attempts.push_back(DecodeHello(bytes)->attempt);
    const ReplyBytes reply = Encode(Reply{.verdict = ReplyVerdict::kAccepted});
    REQUIRE(send(edge.get(), reply.data(), reply.size(), MSG_NOSIGNAL) == kReplyBytes);
    return edge;
  }
  Endpoint endpoint;
  std::vector<uint32_t> attempts;

 private:
  const UniqueFd socket_;
};

// A caller that says what the test wants; hangs up when it goes.
class Caller {
 public:
  Caller(Context& context, const Hello& hello) : socket_(std::move(*Dial(context.endpoint()))) {
    Wait(POLLOUT);
    const HelloBytes bytes = Encode(hello);
    REQUIRE(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == kHelloBytes);
    for (pollfd wait{context.event_fd(), POLLIN, 0}; poll(&wait, 1, 0) == 1;) {
      context.Progress();
    }
  }
  std::optional<ReplyVerdict> Verdict() {
    Wait(POLLIN);
    ReplyBytes bytes;
    if (recv(socket_.get(), bytes.data(), bytes.size(), MSG_WAITALL) != kReplyBytes) {
      return std::nullopt;
    }
    return DecodeReply(bytes)->verdict;
  }
  bool Ended() {
    pollfd wait{socket_.get(), POLLRDHUP, 0};
    return poll(&wait, 1, 0) == 1;
  }

 private:
  void Wait(short events) {
    pollfd wait{socket_.get(), events, 0};
    REQUIRE(poll(&wait, 1, -1) == 1);
  }
  UniqueFd socket_;
};

Hello HelloOf(const Roster& roster, int from, int to, uint32_t attempt = 0) {
  return {.purpose = Purpose::kEdge,
          .channel = Channel::kMain,
          .job_id = "test-job",
          .job_nonce = kTestNonce,
          .generation = roster.id,
          .from = TestWorker(from),
          .to = TestWorker(to),
          .attempt = attempt};
}

// What one end writes, the other reads: the two meshes have the same connection.
bool Connected(const Mesh& a, int b_rank, const Mesh& b, int a_rank) {
  const char sent = 'x';
  char got = 0;
  const int to = a.edge(b_rank).socket.get();
  const int from = b.edge(a_rank).socket.get();
  pollfd wait{from, POLLIN, 0};
  return send(to, &sent, 1, MSG_NOSIGNAL) == 1 && poll(&wait, 1, 5000) == 1 &&
         recv(from, &got, 1, 0) == 1 && got == sent;
}

struct Two {
  Two() {
    low.Connect(roster);
    high.Connect(roster);
    PumpUntil(contexts, [&] { return low.mesh && high.mesh; });
  }
  void Break() { shutdown(low.mesh->edge(1).socket.get(), SHUT_RDWR); }

  Rank low{0};
  Rank high{1};
  const Roster roster = TestRoster(1, {low.context().endpoint(), high.context().endpoint()});
  const std::vector<Context*> contexts{&low.context(), &high.context()};
};

}  // namespace

TEST_CASE("APeerThatRefusesForAWhileIsDialledAgainWhenItsOwnerSaysSo") {
  Rank rank(0);
  PlayedPeer peer;
  rank.Connect(TestRoster(1, {rank.context().endpoint(), peer.endpoint}));
  for (size_t tries = 1; tries <= 3; ++tries) {
    PumpUntil({&rank.context()}, [&] { return rank.failures.size() == tries; });
    CHECK(rank.failures.back().status.code() == StatusCode::kUnavailable);
    CHECK_THAT(rank.failures.back().status.message(), Contains("refused"));
    CHECK(rank.failures.back().peer == TestWorker(1));
    if (tries == 3) {
      peer.Listen();
    }
    rank.Retry();
  }
  const UniqueFd edge = peer.AcceptEdge(rank.context());
  PumpUntil({&rank.context()}, [&] { return rank.mesh != nullptr; });
  CHECK(rank.failures.size() == 3);
  CHECK(peer.attempts == std::vector<uint32_t>{3});
}

TEST_CASE("APeerWhoseBacklogIsFullIsDialledAgain") {
  PlayedPeer peer;
  peer.Listen(0);
  std::vector<UniqueFd> others;  // fill the backlog: the next SYN is dropped
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::move(*Dial(peer.endpoint)));
  }
  Rank rank(0, {.dial = std::chrono::milliseconds(50)});
  rank.Connect(TestRoster(1, {rank.context().endpoint(), peer.endpoint}));
  while (rank.failures.empty()) {
    rank.context().Progress();
  }
  CHECK_THAT(rank.failures[0].status.message(), Contains("no answer within the limit"));
  CHECK(rank.failures[0].peer == TestWorker(1));
  peer.Listen(8);
  for (const UniqueFd& other : others) {  // a SYN of theirs may have been dropped as well
    pollfd wait{other.get(), POLLOUT, 0};
    if (poll(&wait, 1, 0) == 1) {
      peer.Accept();
    }
  }
  others.clear();
  rank.Retry();
  const UniqueFd edge = peer.AcceptEdge(rank.context());
  PumpUntil({&rank.context()}, [&] { return rank.mesh != nullptr; });
  CHECK(rank.failures.size() == 1);
}

struct TwoRanks {
  Rank low{0};
  Rank high{1};
  const Roster roster = TestRoster(1, {low.context().endpoint(), high.context().endpoint()});
  const std::vector<Context*> contexts{&low.context(), &high.context()};
};

TEST_CASE_METHOD(TwoRanks, "ADiallerWithoutDescriptorsBlamesNobodyNamesTheRemedyAndTriesAgain") {
  if (!NoDescriptorLeft::Possible()) {
    return;
  }
  high.Connect(roster);
  {
    const NoDescriptorLeft none;
    low.Connect(roster);
    PumpUntil(contexts, [&] { return !low.failures.empty(); });
  }
  CHECK(low.failures[0].status.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(low.failures[0].status.message(),
             Contains("Too many open files") && Contains("ulimit -n"));
  CHECK_FALSE(low.failures[0].peer);
  low.Retry();
  PumpUntil(contexts, [&] { return low.mesh && high.mesh; });
  CHECK(Connected(*low.mesh, 1, *high.mesh, 0));
  CHECK(low.failures.size() == 1);
}

TEST_CASE_METHOD(TwoRanks, "AnAcceptorWithoutDescriptorsTellsSoAndAcceptsWhenItHasSomeAgain") {
  if (!NoDescriptorLeft::Possible()) {
    return;
  }
  low.Connect(roster);
  high.Connect(roster);
  {
    const NoDescriptorLeft none;
    PumpUntil(contexts, [&] { return !high.failures.empty(); });
    CHECK(high.failures[0].status.code() == StatusCode::kResourceExhausted);
    CHECK_THAT(high.failures[0].status.message(), Contains("ulimit -n"));
    CHECK_FALSE(high.failures[0].peer);
    // Told once per try.
    high.Retry();
    while (high.failures.size() < 2) {
      high.context().Progress();
    }
  }
  while (!low.mesh || !high.mesh) {
    low.context().Progress();
    high.context().Progress();
  }
  CHECK(Connected(*low.mesh, 1, *high.mesh, 0));
  CHECK(low.failures.empty());
}

TEST_CASE("AnAcceptedEdgeThatBreaksIsAwaitedAndToldOncePerTry") {
  Rank low(0);
  Rank rank(1);
  Rank absent(2);
  const Roster roster = TestRoster(
      1, {low.context().endpoint(), rank.context().endpoint(), absent.context().endpoint()});
  rank.Connect(roster);
  { Caller gone(rank.context(), HelloOf(roster, 0, 1)); }
  PumpUntil({&rank.context()}, [&] { return rank.failures.size() == 1; });
  CHECK(rank.failures[0].peer == TestWorker(0));
  rank.Retry();
  PumpUntil({&rank.context()}, [&] { return rank.failures.size() == 2; });
  CHECK(rank.failures[1].peer == TestWorker(0));
  CHECK_THAT(rank.failures[1].status.message(), Contains("not dialled again"));
  Caller again(rank.context(), HelloOf(roster, 0, 1, 1));
  CHECK(again.Verdict() == ReplyVerdict::kAccepted);
  rank.Retry();
  absent.Connect(roster);
  PumpUntil({&rank.context(), &absent.context()}, [&] { return rank.mesh != nullptr; });
  CHECK(rank.failures.size() == 2);
}

TEST_CASE("AHelloThatWasOvertakenByANewerOneOfItsCallerIsDropped") {
  Rank rank(1);
  const Roster roster = TestRoster(
      1, {rank.context().endpoint(), rank.context().endpoint(), rank.context().endpoint()});
  SECTION("the mesh is being made") { rank.Connect(roster); }
  SECTION("both wait for the roster") {}
  Caller newer(rank.context(), HelloOf(roster, 0, 1, 4));
  Caller older(rank.context(), HelloOf(roster, 0, 1, 3));
  if (rank.context().NextDeadline()) {
    { const Caller oldest(rank.context(), HelloOf(roster, 0, 1, 2)); }
    rank.Connect(roster);
  }
  CHECK(newer.Verdict() == ReplyVerdict::kAccepted);
  CHECK(older.Verdict() == std::nullopt);
  CHECK_FALSE(newer.Ended());
}

TEST_CASE("AnEdgeThatBreaksBeforeEitherSideUsedItsMeshIsMadeAnew") {
  Two two;
  two.Break();
  // The lower one dials, whoever notices first; the higher one gets its mesh back by then.
  PumpUntil(two.contexts, [&] { return !two.low.failures.empty() && !two.high.failures.empty(); });
  CHECK_FALSE(two.low.mesh);
  CHECK_FALSE(two.high.mesh);
  CHECK(two.low.failures[0].peer == TestWorker(1));
  CHECK(two.high.failures[0].peer == TestWorker(0));
  two.low.Retry();
  PumpUntil(two.contexts, [&] { return two.low.mesh && two.high.mesh; });
  CHECK(Connected(*two.low.mesh, 1, *two.high.mesh, 0));
  // And once more: the sockets are watched again.
  two.Break();
  PumpUntil(two.contexts, [&] { return two.low.failures.size() == 2; });
  two.low.Retry();
  PumpUntil(two.contexts, [&] { return two.low.mesh && two.high.mesh; });
  CHECK(Connected(*two.high.mesh, 0, *two.low.mesh, 1));
}

TEST_CASE("ACompleteMeshTakesANewDialOfAnEdgeThatItsCallerHasLost") {
  Two two;
  Caller again(two.high.context(), HelloOf(two.roster, 0, 1, 1));
  CHECK(again.Verdict() == ReplyVerdict::kAccepted);
  PumpUntil({&two.high.context()}, [&] { return two.high.mesh != nullptr; });
  CHECK(two.high.failures.empty());
  CHECK_FALSE(again.Ended());
  // The stranger's hello does not touch it.
  Caller stranger(two.high.context(), HelloOf(two.roster, 1, 1, 2));
  CHECK(stranger.Verdict() == ReplyVerdict::kWrongPeer);
  CHECK(two.high.mesh);
}

TEST_CASE("AMeshThatIsInUseIsNotTouchedAndTheCallerIsTold") {
  Two two;
  two.high.used = true;
  two.Break();
  PumpUntil({&two.low.context()}, [&] { return two.low.failures.size() == 1; });
  two.low.Retry();
  PumpUntil(two.contexts, [&] { return two.low.failures.size() == 2; });
  CHECK(two.low.failures[1].status.code() == StatusCode::kUnavailable);
  CHECK_THAT(two.low.failures[1].status.message(), Contains("in use"));
  CHECK(two.low.failures[1].peer == TestWorker(1));
  CHECK(two.high.mesh);
  CHECK(two.high.failures.empty());
}
