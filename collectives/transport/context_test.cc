#include "collectives/transport/context.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "collectives/testing/group.h"
#include "collectives/transport/wire.h"
#include "rendezvous/base/real_clock.h"

using namespace elastic::internal;
using Catch::Matchers::Contains;

namespace {

using Result = tl::expected<std::unique_ptr<Mesh>, Context::Failure>;

// A caller that says whatever the test wants.
class Caller {
 public:
  explicit Caller(const Context& context) : socket_(std::move(*Dial(context.endpoint()))) {
    Wait(POLLOUT);
  }
  void Send(const void* data, size_t bytes) {
    REQUIRE(send(socket_.get(), data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes));
  }
  void Say(const Hello& hello) {
    const HelloBytes bytes = Encode(hello);
    Send(bytes.data(), bytes.size());
  }
  bool Answered() { return Poll(POLLIN, 0); }
  // The answer; nothing if the other side closed without one.
  std::optional<ReplyVerdict> Verdict() {
    Wait(POLLIN);
    ReplyBytes bytes;
    if (recv(socket_.get(), bytes.data(), bytes.size(), MSG_WAITALL) != kReplyBytes) {
      return std::nullopt;
    }
    return DecodeReply(bytes)->verdict;
  }

 private:
  bool Poll(short events, int timeout) {
    pollfd wait{.fd = socket_.get(), .events = events, .revents = 0};
    return poll(&wait, 1, timeout) == 1;
  }
  void Wait(short events) { REQUIRE(Poll(events, -1)); }
  UniqueFd socket_;
};

// Lets the context do all that has reached it.
void Settle(Context& context) {
  pollfd wait{.fd = context.event_fd(), .events = POLLIN, .revents = 0};
  while (poll(&wait, 1, 0) == 1) {
    context.Progress();
  }
}

Hello HelloTo(const Roster& roster, int from, int to) {
  return {.purpose = Purpose::kEdge,
          .channel = Channel::kMain,
          .job_id = "test-job",
          .job_nonce = kTestNonce,
          .generation = roster.id,
          .from = TestWorker(from),
          .to = TestWorker(to)};
}

std::vector<Context*> Pointers(const std::vector<std::unique_ptr<Context>>& contexts) {
  std::vector<Context*> pointers;
  for (const auto& context : contexts) {
    if (context) {
      pointers.push_back(context.get());
    }
  }
  return pointers;
}

}  // namespace

TEST_CASE("AHelloOfAnotherJobNonceIncarnationOrGenerationIsRefused") {
  auto contexts = TcpContexts(2);
  Context& context = *contexts[1];
  const Roster roster = TestRoster(5, contexts);
  std::optional<Result> result;
  context.Connect(roster, Channel::kMain, [&](Result made) { result = std::move(made); });

  Hello hello = HelloTo(roster, 0, 1);
  ReplyVerdict expected = ReplyVerdict::kWrongJob;
  SECTION("job") { hello.job_id = "another"; }
  SECTION("nonce") { hello.job_nonce ^= 1; }
  SECTION("incarnation of the one called") {
    hello.to.counter += 1;
    expected = ReplyVerdict::kWrongPeer;
  }
  SECTION("incarnation of the caller") {
    hello.from.agent.value += 1;
    expected = ReplyVerdict::kWrongPeer;
  }
  SECTION("a higher rank, which has to wait for our call") {
    hello.from = TestWorker(1);
    expected = ReplyVerdict::kWrongPeer;
  }
  SECTION("roster of the generation") {
    hello.generation.roster_digest ^= 1;
    expected = ReplyVerdict::kOverThere;
  }
  SECTION("server of the generation") {
    hello.generation.server.value += 1;
    expected = ReplyVerdict::kOverThere;
  }
  SECTION("number of the generation") {
    context.Cancel({4});
    hello.generation.number.value = 4;
    expected = ReplyVerdict::kOverThere;
  }
  Caller caller(context);
  caller.Say(hello);
  Settle(context);
  CHECK(caller.Verdict() == expected);
  CHECK_FALSE(result);

  // The right one is still welcome.
  Caller right(context);
  right.Say(HelloTo(roster, 0, 1));
  Settle(context);
  CHECK(right.Verdict() == ReplyVerdict::kAccepted);
  REQUIRE(result);
  CHECK(result->has_value());

  // But only once.
  Caller again(context);
  again.Say(HelloTo(roster, 0, 1));
  Settle(context);
  CHECK(again.Verdict() == ReplyVerdict::kInUse);
}

TEST_CASE("BytesThatAreNoHelloAreClosedWithoutAnAnswer") {
  auto contexts = TcpContexts(1);
  Caller caller(*contexts[0]);
  caller.Send(std::string(kHelloBytes, 'G').data(), kHelloBytes);
  Settle(*contexts[0]);
  CHECK(caller.Verdict() == std::nullopt);
}

TEST_CASE("AHelloThatComesBeforeItsRosterWaitsAndIsThenAccepted") {
  auto contexts = TcpContexts(2);
  Context& context = *contexts[1];
  const Roster roster = TestRoster(3, contexts);
  Caller caller(context);
  const HelloBytes bytes = Encode(HelloTo(roster, 0, 1));
  caller.Send(bytes.data(), 60);  // in two parts
  Settle(context);
  caller.Send(bytes.data() + 60, kHelloBytes - 60);
  Settle(context);
  REQUIRE_FALSE(caller.Answered());
  CHECK(context.NextDeadline());

  std::optional<Result> runtime;
  context.Connect(roster, Channel::kCreated, [&](Result made) { runtime = std::move(made); });
  Settle(context);
  REQUIRE_FALSE(caller.Answered());  // it asked for the other channel

  std::optional<Result> program;
  context.Connect(roster, Channel::kMain, [&](Result made) { program = std::move(made); });
  Settle(context);
  CHECK(caller.Verdict() == ReplyVerdict::kAccepted);
  REQUIRE(program);
  REQUIRE(program->has_value());
  CHECK((**program)->channel() == Channel::kMain);
  CHECK((**program)->generation() == roster.id);
  CHECK((**program)->edge(0).socket.valid());
  CHECK_FALSE(runtime);
}

TEST_CASE("AWaitingHelloIsRefusedWhenItsGenerationIsOver") {
  auto contexts = TcpContexts(2);
  Caller caller(*contexts[1]);
  caller.Say(HelloTo(TestRoster(3, contexts), 0, 1));
  Settle(*contexts[1]);
  contexts[1]->Cancel({3});
  CHECK(caller.Verdict() == ReplyVerdict::kOverThere);
}

TEST_CASE("WaitingHellosAndUnreadConnectionsAreBounded") {
  auto context = Context::Create({.listen_address = "127.0.0.1",
                                  .job_id = "test-job",
                                  .job_nonce = kTestNonce,
                                  .self = TestWorker(1),
                                  .limits = {.unread_hellos = 2, .waiting_hellos = 1}});
  REQUIRE(context.ok());
  const Roster roster = TestRoster(1, {(*context)->endpoint(), (*context)->endpoint()});
  Caller first(**context), second(**context);
  first.Say(HelloTo(roster, 0, 1));
  Settle(**context);
  second.Say(HelloTo(roster, 0, 1));
  Settle(**context);
  CHECK_FALSE(first.Answered());
  CHECK(second.Verdict() == ReplyVerdict::kTooMany);
  Caller silent(**context), quiet(**context), third(**context);
  Settle(**context);
  CHECK(third.Verdict() == std::nullopt);
  CHECK_FALSE(silent.Answered());
  CHECK_FALSE(quiet.Answered());
}

TEST_CASE("LimitsOfTimeEndWhatSaysNothing") {
  const auto limit = std::chrono::milliseconds(1);
  auto context = Context::Create({.listen_address = "127.0.0.1",
                                  .job_id = "test-job",
                                  .job_nonce = kTestNonce,
                                  .self = TestWorker(1),
                                  .limits = {.hello_read = limit, .hello_wait = limit}});
  REQUIRE(context.ok());
  CHECK_FALSE((*context)->NextDeadline());
  const Roster roster = TestRoster(1, {(*context)->endpoint(), (*context)->endpoint()});
  Caller caller(**context);
  const bool speaks = GENERATE(true, false);
  if (speaks) {
    caller.Say(HelloTo(roster, 0, 1));
  }
  Settle(**context);
  while ((*context)->NextDeadline()) {
    (*context)->Progress();
  }
  CHECK(caller.Verdict() == (speaks ? std::optional(ReplyVerdict::kOverThere) : std::nullopt));
}

TEST_CASE("APeerThatNobodyListensForIsNamed") {
  auto contexts = TcpContexts(3);
  const Roster roster = TestRoster(1, contexts);
  contexts[2].reset();
  std::array<std::optional<Result>, 2> results;
  for (size_t i = 0; i < 2; ++i) {
    contexts[i]->Connect(roster, Channel::kMain,
                         [&, i](Result made) { results[i] = std::move(made); });
  }
  PumpUntil(Pointers(contexts), [&] { return results[0] && results[1]; });
  for (const auto& result : results) {
    REQUIRE_FALSE(result->has_value());
    CHECK(result->error().status.code() == StatusCode::kUnavailable);
    CHECK_THAT(result->error().status.message(), Contains("rank 2"));
    // Nobody blames the healthy one, though its mesh failed as well.
    CHECK(result->error().peer == TestWorker(2));
  }
  // The successor without it connects over the same listeners.
  contexts[0]->Cancel({1});
  contexts[1]->Cancel({1});
  contexts.pop_back();
  const auto meshes = TcpMeshes(contexts, 2);
  CHECK(meshes[0]->edge(1).socket.valid());
  CHECK(meshes[1]->edge(0).socket.valid());
}

TEST_CASE("APeerThatDiesWhileOthersAreStillMissingIsNamed") {
  auto contexts = TcpContexts(3);
  const Roster roster = TestRoster(1, contexts);
  std::optional<Result> result;
  contexts[1]->Connect(roster, Channel::kMain, [&](Result made) { result = std::move(made); });
  {
    Caller caller(*contexts[1]);
    caller.Say(HelloTo(roster, 0, 1));
    Settle(*contexts[1]);
    REQUIRE(caller.Verdict() == ReplyVerdict::kAccepted);
    REQUIRE_FALSE(result);
  }
  PumpUntil({contexts[1].get()}, [&] { return result.has_value(); });
  REQUIRE_FALSE(result->has_value());
  CHECK(result->error().peer == TestWorker(0));
}

TEST_CASE("ACallToOneThatKnowsTheGenerationIsOverBlamesNobody") {
  auto contexts = TcpContexts(2);
  contexts[1]->Cancel({1});
  std::optional<Result> result;
  contexts[0]->Connect(TestRoster(1, contexts), Channel::kMain,
                       [&](Result made) { result = std::move(made); });
  PumpUntil(Pointers(contexts), [&] { return result.has_value(); });
  REQUIRE_FALSE(result->has_value());
  CHECK(result->error().status.code() == StatusCode::kAborted);
  CHECK_FALSE(result->error().peer);
}

TEST_CASE("CancelDropsConnectsSilently") {
  auto contexts = TcpContexts(2);
  bool called = false;
  contexts[0]->Connect(TestRoster(1, contexts), Channel::kMain, [&](Result) { called = true; });
  contexts[0]->Cancel({1});
  const auto meshes = TcpMeshes(contexts, 2);
  CHECK(meshes.size() == 2);
  CHECK_FALSE(called);
}

TEST_CASE("ARosterWithoutThisWorkerIsRefused") {
  auto contexts = TcpContexts(2);
  Roster roster = TestRoster(1, contexts);
  roster.entries[1].incarnation = TestWorker(7);
  std::optional<Result> result;
  contexts[1]->Connect(roster, Channel::kMain, [&](Result made) { result = std::move(made); });
  Settle(*contexts[1]);
  REQUIRE(result);
  CHECK(result->error().status.code() == StatusCode::kInvalidArgument);
}

TEST_CASE("ManyGenerationsInARowLeaveNoDescriptorBehind") {
  auto contexts = TcpContexts(4);
  const auto open_descriptors = [] {
    const UniqueFd probe = NewEventFd();
    return probe.get();
  };
  int first = 0;
  for (uint32_t generation = 1; generation <= 30; ++generation) {
    {
      const auto program = TcpMeshes(contexts, generation, Channel::kMain);
      const auto runtime = TcpMeshes(contexts, generation, Channel::kCreated);
    }
    for (const auto& context : contexts) {
      context->Cancel({generation});
    }
    if (generation == 1) {
      first = open_descriptors();
    }
  }
  CHECK(open_descriptors() == first);
}

TEST_CASE("AddressesMustBeNumeric") {
  const auto context = Context::Create({.listen_address = "localhost", .job_id = "x"});
  REQUIRE_FALSE(context.ok());
  CHECK(context.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(context.status().message(), Contains("'localhost'"));
  const auto long_id =
      Context::Create({.listen_address = "127.0.0.1", .job_id = std::string(65, 'x')});
  CHECK(long_id.status().code() == StatusCode::kInvalidArgument);
  const auto v6 = Context::Create({.listen_address = "::1", .job_id = "x"});
  if (v6.ok()) {  // hosts without IPv6 exist
    CHECK((*v6)->endpoint().port != 0);
  }
}
