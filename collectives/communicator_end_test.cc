// How operations end when they cannot complete: marks, aborts, deaths, deadlines, other calls.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "collectives/communicator.h"
#include "collectives/limits.h"
#include "collectives/testing/group.h"
#include "rendezvous/base/real_clock.h"

using namespace elastic::internal;
using Catch::Matchers::Contains;

namespace {

constexpr size_t kLargeBytes = 8u << 20;  // more than socket buffers take: senders block too

// Every operation that waits, with sizes for each of its algorithms. A new one belongs here.
struct Wait {
  const char* name;
  std::function<Status(Communicator&, std::optional<Instant>)> run;
};

struct Buffers {
  std::vector<std::byte> in = std::vector<std::byte>(kLargeBytes);
  std::vector<std::byte> out = std::vector<std::byte>(4 * kLargeBytes);
};

Status Reduce(Communicator& communicator, size_t bytes, std::optional<Instant> deadline) {
  Buffers buffers;
  return communicator
      .AllReduce(buffers.in.data(), buffers.out.data(), bytes / sizeof(float), DataType::kFloat32,
                 ReduceOp::kSum, {}, deadline)
      .status();
}

Status Gather(Communicator& communicator, size_t bytes, std::optional<Instant> deadline) {
  Buffers buffers;
  return communicator.AllGather(buffers.in.data(), buffers.out.data(), bytes, {}, deadline)
      .status();
}

// Of a part of `bytes` bytes for each of two ranks.
Status Scatter(Communicator& communicator, size_t bytes, std::optional<Instant> deadline) {
  Buffers buffers;
  return communicator
      .ReduceScatter(buffers.in.data(), buffers.out.data(), bytes / sizeof(float),
                     DataType::kFloat32, ReduceOp::kProduct, {}, deadline)
      .status();
}

Status Spread(Communicator& communicator, size_t bytes, int root, std::optional<Instant> deadline) {
  Buffers buffers;
  return communicator.Broadcast(buffers.in.data(), bytes, root, {}, deadline).status();
}

const std::vector<Wait>& Waits() {
  using Deadline = std::optional<Instant>;
  static const std::vector<Wait> waits = {
      {"direct allreduce", [](Communicator& c, Deadline d) { return Reduce(c, 64, d); }},
      {"ring allreduce", [](Communicator& c, Deadline d) { return Reduce(c, kLargeBytes, d); }},
      {"flat broadcast", [](Communicator& c, Deadline d) { return Spread(c, 64, 1, d); }},
      {"ring broadcast", [](Communicator& c, Deadline d) { return Spread(c, kLargeBytes, 1, d); }},
      {"ring broadcast at its root",
       [](Communicator& c, Deadline d) { return Spread(c, kLargeBytes, 0, d); }},
      {"direct allgather", [](Communicator& c, Deadline d) { return Gather(c, 64, d); }},
      {"ring allgather", [](Communicator& c, Deadline d) { return Gather(c, kLargeBytes, d); }},
      {"barrier", [](Communicator& c, Deadline d) { return c.Barrier({}, d).status(); }},
      {"direct reduce-scatter", [](Communicator& c, Deadline d) { return Scatter(c, 64, d); }},
      {"ring reduce-scatter",
       [](Communicator& c, Deadline d) { return Scatter(c, kLargeBytes / 2, d); }},
      {"commit", [](Communicator& c, Deadline d) { return c.Agree({}, d).status(); }},
  };
  return waits;
}

// Rank 0 waits in every operation in turn for rank 1, which never comes; `end` ends the wait.
void CheckEachWait(Transport transport, const std::function<void(Group&)>& end,
                   const std::function<void(Group&, const Status&)>& check) {
  for (const Wait& wait : Waits()) {
    CAPTURE(wait.name);
    Group group(transport, 2);
    Status status;
    BlockedThread waiter([&] { status = wait.run(group.at(0), std::nullopt); });
    waiter.AwaitAsleep();
    end(group);
    waiter.Join();
    CAPTURE(status.ToString());
    check(group, status);
  }
}

}  // namespace

TEST_CASE("AMarkEndsEveryKindOfWaitAndAccusesNobody") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  CheckEachWait(
      transport, [](Group& group) { group.interrupt(0).End({1}); },
      [](Group& group, const Status& status) {
        CHECK(status.code() == StatusCode::kAborted);
        CHECK_THAT(status.message(), Contains("is over"));
        CHECK_FALSE(group.at(0).broken_peer());
        CHECK(group.at(0).Barrier().status().code() == StatusCode::kAborted);
      });
}

TEST_CASE("AbortFromAnotherThreadEndsEveryKindOfWait") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  CheckEachWait(
      transport, [](Group& group) { group.at(0).Abort(); },
      [](Group& group, const Status& status) {
        CHECK(status.code() == StatusCode::kAborted);
        CHECK_FALSE(group.at(0).broken_peer());
        CHECK(group.at(0).Barrier().status().code() == StatusCode::kAborted);
      });
}

TEST_CASE("ADeadPeerEndsEveryKindOfWaitAndIsNamed") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  CheckEachWait(
      transport, [](Group& group) { group.Kill(1); },
      [](Group& group, const Status& status) {
        CHECK(status.code() == StatusCode::kUnavailable);
        CHECK_THAT(status.message(), Contains("rank 1"));
        CHECK(group.at(0).broken_peer() == TestWorker(1));
        CHECK(group.at(0).Barrier().status().code() == StatusCode::kUnavailable);
      });
}

TEST_CASE("ADeadPeerOfAGenerationThatIsOverIsNotAccused") {
  CheckEachWait(
      Transport::kTcp,
      [](Group& group) {
        group.interrupt(0).End({1});
        group.Kill(1);
      },
      [](Group& group, const Status& status) {
        CHECK(status.code() == StatusCode::kAborted);
        CHECK_FALSE(group.at(0).broken_peer());
      });
}

TEST_CASE("AnAbortReachesThePeersWait") {
  for (const Wait& wait : Waits()) {
    CAPTURE(wait.name);
    Group group(Transport::kTcp, 2);
    Status status;
    BlockedThread waiter([&] { status = wait.run(group.at(0), std::nullopt); });
    waiter.AwaitAsleep();
    group.at(1).Abort();
    waiter.Join();
    CHECK(status.code() == StatusCode::kUnavailable);
    CHECK(group.at(0).broken_peer() == TestWorker(1));
  }
}

TEST_CASE("EveryWaitKeepsItsDeadline") {
  for (const Wait& wait : Waits()) {
    CAPTURE(wait.name);
    Group group(Transport::kTcp, 2);
    const Instant start = Now();
    const Status status = wait.run(group.at(0), start + std::chrono::milliseconds(5));
    CHECK(status.code() == StatusCode::kDeadlineExceeded);
    CHECK(Now() - start >= std::chrono::milliseconds(5));
    CHECK(group.at(0).Barrier().status().code() == StatusCode::kDeadlineExceeded);
  }
}

TEST_CASE("ABellWithoutAMarkNeitherEndsAWaitNorMakesItSpin") {
  Group group(Transport::kTcp, 2);
  Status status;
  BlockedThread waiter([&] { status = group.at(0).Barrier().status(); });
  waiter.AwaitAsleep();
  const uint64_t asked = group.interrupt(0).asked();
  group.interrupt(0).Ring();
  waiter.AwaitAsleep();
  waiter.AwaitAsleep();
  CHECK(group.interrupt(0).asked() > asked);
  CHECK(group.interrupt(0).asked() <= asked + 3);
  // The bell is still readable; the truth that comes with the next ring is noticed all the same.
  group.interrupt(0).End({1});
  waiter.Join();
  CHECK(status.code() == StatusCode::kAborted);
}

TEST_CASE("ACommunicatorMadeWhileTheBellStillRingsForAnOlderGenerationWorks") {
  std::vector<std::unique_ptr<Mesh>> meshes = SocketPairMeshes(2, 2);
  FakeInterrupt interrupt;
  interrupt.End({1});
  Communicator first(std::move(meshes[0]), interrupt);
  Communicator second(std::move(meshes[1]), interrupt);
  Status status;
  BlockedThread waiter([&] { status = first.Barrier().status(); });
  waiter.AwaitAsleep();
  CHECK(second.Barrier().ok());
  waiter.Join();
  CHECK(status == OkStatus());
}

TEST_CASE("APeerThatDiesInMidTransferIsNamedByBothNeighbours") {
  const auto contexts = TcpContexts(3);
  auto meshes = TcpMeshes(contexts);
  FakeInterrupt interrupt;
  Communicator zero(std::move(meshes[0]), interrupt);
  Communicator one(std::move(meshes[1]), interrupt);
  Status statuses[2];
  BlockedThread first([&] { statuses[0] = Reduce(zero, kLargeBytes, std::nullopt); });
  BlockedThread second([&] { statuses[1] = Reduce(one, kLargeBytes, std::nullopt); });
  first.AwaitAsleep();
  second.AwaitAsleep();
  // Takes a part of what rank 1 sends and dies with the rest unread: a reset, not an end.
  std::array<std::byte, 4096> some;
  REQUIRE(recv(meshes[2]->edge(1).socket.get(), some.data(), some.size(), 0) > 0);
  meshes[2].reset();
  first.Join();
  second.Join();
  CHECK(statuses[0].code() == StatusCode::kUnavailable);
  CHECK(statuses[1].code() == StatusCode::kUnavailable);
  CHECK(zero.broken_peer() == TestWorker(2));
  CHECK(one.broken_peer() == TestWorker(2));
}

TEST_CASE("ARankThatHasFinishedMayCloseWhileOthersStillWork") {
  // Rank 0 is the root: it is done when its bytes are with the kernel.
  Group group(Transport::kTcp, 3);
  std::array<Status, 3> statuses;
  group.Run([&](int rank) {
    std::vector<float> data(20'000, static_cast<float>(rank));
    const auto r = static_cast<size_t>(rank);
    statuses[r] = group.at(rank).Broadcast(data.data(), data.size() * sizeof(float), 0).status();
    if (statuses[r].ok() && data.back() != 0.0f) {
      statuses[r] = InternalError("wrong bytes");
    }
    group.at(rank).Abort();
  });
  for (const Status& status : statuses) {
    CHECK(status == OkStatus());
  }
}

TEST_CASE("RanksThatMakeDifferentCallsAreToldBothSides") {
  struct Case {
    const char* name;
    std::function<Status(Communicator&)> zero, one;
    const char* says;
  };
  std::vector<float> data(70'000);
  std::array<std::vector<float>, 2> memory{data, data};
  const auto reduce = [&](size_t count, ReduceOp op) {
    return [&memory, count, op](Communicator& c) {
      std::vector<float>& mine = memory[static_cast<size_t>(c.rank())];
      return c.AllReduce(mine.data(), mine.data(), count, DataType::kFloat32, op).status();
    };
  };
  const auto broadcast = [&](int root) {
    return [&memory, root](Communicator& c) {
      return c.Broadcast(memory[static_cast<size_t>(c.rank())].data(), 16, root).status();
    };
  };
  const std::vector<Case> cases = {
      {"size", reduce(4, ReduceOp::kSum), reduce(5, ReduceOp::kSum), "16 bytes"},
      {"algorithm", reduce(4, ReduceOp::kSum), reduce(70'000, ReduceOp::kSum), "280000 bytes"},
      {"reduction", reduce(4, ReduceOp::kMin), reduce(4, ReduceOp::kSum), "min"},
      {"kind", reduce(4, ReduceOp::kSum), [](Communicator& c) { return c.Barrier().status(); },
       "barrier"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Group group(Transport::kTcp, 2);
    std::array<Status, 2> statuses;
    group.Run([&](int rank) {
      statuses[static_cast<size_t>(rank)] =
          rank == 0 ? one.zero(group.at(0)) : one.one(group.at(1));
    });
    for (const Status& status : statuses) {
      CHECK(status.code() == StatusCode::kInvalidArgument);
      CHECK_THAT(status.message(), Contains("rank 0") && Contains("rank 1") && Contains(one.says));
    }
    CHECK_FALSE(group.at(0).broken_peer());
  }
  // The root alone sends; the other notices when the calls after it do not match.
  Group group(Transport::kTcp, 2);
  REQUIRE(broadcast(0)(group.at(0)).ok());
  CHECK(group.at(1).Barrier().status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("ArgumentsAreCheckedBeforeAByteIsSent") {
  Group group(Transport::kSocketPairs, 2);
  Communicator& communicator = group.at(0);
  std::array<float, 8> data{};
  const auto code = [](const Event& event) { return event.status().code(); };
  CHECK(code(communicator.AllReduce(data.data(), data.data(), 8, static_cast<DataType>(9),
                                    ReduceOp::kSum)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllReduce(data.data(), data.data(), 8, DataType::kFloat32,
                                    static_cast<ReduceOp>(0))) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllReduce(data.data(), data.data() + 1, 4, DataType::kFloat32,
                                    ReduceOp::kSum)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllReduce(nullptr, data.data(), 8, DataType::kFloat32, ReduceOp::kSum)) ==
        StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllReduce(data.data(), data.data(), SIZE_MAX / 2, DataType::kFloat32,
                                    ReduceOp::kSum)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.Broadcast(data.data(), 8, 2)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.Broadcast(data.data(), 8, -1)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllGather(nullptr, data.data(), 8)) == StatusCode::kInvalidArgument);
  CHECK(code(communicator.AllGather(data.data(), data.data(), SIZE_MAX)) ==
        StatusCode::kInvalidArgument);
  // Nothing was sent: the communicators still agree.
  std::array<Status, 2> statuses;
  group.Run(
      [&](int rank) { statuses[static_cast<size_t>(rank)] = group.at(rank).Barrier().status(); });
  CHECK(statuses[0] == OkStatus());
  CHECK(statuses[1] == OkStatus());
}
