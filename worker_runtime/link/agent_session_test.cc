#include "worker_runtime/link/agent_session.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

#include "rendezvous/base/hash.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/testing/played_worker.h"
#include "worker_runtime/link/testing/worker_pair.h"

// Whole workers against agents that the test plays, over real sockets, pages and connections.

namespace elastic::internal::testing {
namespace {

TEST_CASE("A worker that has connected beats and holds its owner mutex, and is starting") {
  TestFolder folder;
  PlayedWorker worker(folder, 1);
  REQUIRE(worker.agent().page().owner_ready == 1);
  REQUIRE(worker.agent().page().beats >= 1);
  REQUIRE(worker.agent().phase() == Phase::kStarting);
  REQUIRE(worker.session().incarnation() == "1.1");
  REQUIRE_FALSE(worker.session().membership().has_value());
}

TEST_CASE("The first members take rank 0's state and commit it as version 0") {
  Pair pair;
  REQUIRE(pair.first.current() == 10);
  REQUIRE(pair.second.current() == 10);
  const Held held = pair.second.agent().held();
  REQUIRE(held.version == StateVersion{GenerationNumber{1}, 1});
  const std::vector<std::byte> bytes = pair.second.agent().HeldBytes();
  REQUIRE(held.digest == HashBytes(bytes.data(), bytes.size()));
  REQUIRE(std::memcmp(bytes.data(), &pair.first.current(), bytes.size()) == 0);
  REQUIRE(pair.second.session().membership()->place.rank == 1);
  REQUIRE(pair.second.session().membership()->place.size == 2);
  pair.first.agent().Await(local::FrameKind::kEntered);
}

TEST_CASE("A commit publishes what is held before the word names it") {
  Pair pair;
  pair.Step(7);
  REQUIRE(pair.first.current() == 13);
  REQUIRE(pair.first.agent().word().commits == 2);
  REQUIRE(pair.first.agent().held().version == StateVersion{GenerationNumber{1}, 2});
  REQUIRE(pair.first.agent().held().step == 7);
  REQUIRE(pair.first.agent().held() == pair.second.agent().held());
  REQUIRE(pair.first.session().committed_step() == 7);
}

TEST_CASE("A fence ends a blocked collective, and the next generation begins at the commit") {
  Pair pair;
  pair.Step(1);
  pair.first.next() = 999;  // unfinished work, to be dropped
  int64_t value = 1;
  auto blocked = pair.first.Sum(&value);
  REQUIRE(Pending(blocked));
  REQUIRE(pair.first.agent().phase() == Phase::kInCollective);
  pair.first.agent().Fence();
  REQUIRE(Result(blocked).code() == StatusCode::kAborted);
  auto joined = pair.first.Join();
  REQUIRE(Pending(joined));
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                          {pair.Holder(pair.first, 0)}));
  REQUIRE(Result(joined).ok());
  REQUIRE(pair.first.session().membership()->generation.value == 2);
  REQUIRE(pair.first.session().membership()->place.size == 1);
  REQUIRE(pair.first.current() == 13);
  REQUIRE(pair.first.session().recovery_times().restored > 0);
  pair.first.next() = 14;
  auto commit = pair.first.Commit(2);
  REQUIRE(Result(commit).ok());
  REQUIRE(pair.first.agent().held().version == StateVersion{GenerationNumber{2}, 1});
}

TEST_CASE("A fence ends a commit that waits for the other ranks, without committing") {
  Pair pair;
  pair.Step(1);
  pair.SumBoth();
  pair.first.next() = 5;
  auto alone = pair.first.Commit(2);  // it goes by the sum
  REQUIRE(Result(alone).ok());
  auto waiting = pair.first.Commit(3);  // a rank is at most one commit ahead (P6)
  REQUIRE(Pending(waiting));
  REQUIRE(pair.first.agent().phase() == Phase::kCommitting);
  pair.first.agent().Fence();
  REQUIRE(Result(waiting).code() == StatusCode::kAborted);
  REQUIRE(pair.first.agent().held().step == 2);
}

TEST_CASE("Commits without a collective of the program agree by themselves (P6)") {
  Pair pair;
  for (uint64_t step = 1; step <= 3; ++step) {
    auto first = pair.first.Commit(step);
    REQUIRE(Pending(first));
    auto second = pair.second.Commit(step);
    REQUIRE(Result(first).ok());
    REQUIRE(Result(second).ok());
  }
  REQUIRE(pair.first.agent().held().version == pair.second.agent().held().version);
}

TEST_CASE("A stop that one rank asks for is seen by all after the same commit") {
  Pair pair;
  pair.Step(1);
  pair.first.session().RequestStop();
  REQUIRE_FALSE(pair.first.session().stop_requested());
  pair.Step(2);
  REQUIRE(pair.first.session().stop_requested());
  REQUIRE(pair.second.session().stop_requested());
  // Not after a restore: a member that was behind would not have seen it. The next commit says it.
  for (PlayedWorker* worker : {&pair.first, &pair.second}) {
    worker->agent().Fence();
  }
  auto first = pair.first.Join();
  auto second = pair.second.Join();
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                          {pair.Holder(pair.first, 0), pair.Holder(pair.second, 1)}));
  REQUIRE(Result(first).ok());
  REQUIRE(Result(second).ok());
  REQUIRE_FALSE(pair.second.session().stop_requested());
  pair.Step(3);
  REQUIRE(pair.first.session().stop_requested());
  REQUIRE(pair.second.session().stop_requested());
}

TEST_CASE("An operator's stop lets those go that wait for a generation") {
  Pair pair;
  pair.Step(1);
  pair.first.agent().Fence();
  auto waiting = pair.first.Join();
  REQUIRE(Pending(waiting));
  for (PlayedWorker* worker : {&pair.first, &pair.second}) {
    worker->agent().Send(local::MakeFrame(local::FrameKind::kStopWanted));
  }
  REQUIRE(Result(waiting).ok());
  REQUIRE(pair.first.session().done());
  // The other one is in its function, and leaves when its generation is over.
  int64_t value = 1;
  auto blocked = pair.second.Sum(&value);
  REQUIRE(Pending(blocked));
  pair.second.agent().Fence();
  REQUIRE(Result(blocked).code() == StatusCode::kAborted);
  auto joined = pair.second.Join();
  REQUIRE(Result(joined).ok());
  REQUIRE(pair.second.session().done());
}

TEST_CASE("A member that is behind takes the resume version from one that holds it") {
  Pair pair;
  pair.Step(1);
  pair.SumBoth();
  pair.first.next() = 0;
  auto ahead = pair.first.Commit(2);
  REQUIRE(Result(ahead).ok());
  const Held resume = pair.first.agent().held();
  const int64_t committed = pair.first.current();
  pair.first.agent().Fence();
  pair.second.agent().Fence();
  RosterEntry behind = pair.second.entry();
  behind.previous_rank = 1;
  auto first = pair.first.Join();
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = resume},
                          {pair.Holder(pair.first, 0), behind}));
  REQUIRE(Result(first).ok());
  // The second one's program is still in its function and may write: nothing is written under it.
  const Held own = pair.second.agent().held();
  pair.second.next() = 4711;
  int64_t value = 1;
  auto blocked = pair.first.Sum(&value);
  REQUIRE(Pending(blocked));
  REQUIRE(pair.second.next() == 4711);
  REQUIRE(pair.second.agent().held() == own);
  auto second = pair.second.Join();
  REQUIRE(Result(second).ok());
  REQUIRE(pair.second.current() == committed);
  REQUIRE(pair.second.agent().held() == resume);
  int64_t other = 2;
  auto unblocking = pair.second.Sum(&other);
  REQUIRE(Result(unblocking).ok());
  REQUIRE(Result(blocked).ok());
  REQUIRE(value == 3);
  pair.Step(3);
}

// Members of generation 1 of which the first one has a commit more, both fenced. The second one
// waits for a generation that has the first one's state.
struct OneBehind : Pair {
  OneBehind() {
    Step(1);
    SumBoth();
    first.next() = 42;
    auto ahead = first.Commit(2);
    REQUIRE(Result(ahead).ok());
    first.agent().Fence();
    second.agent().Fence();
    behind = second.entry();
    behind.previous_rank = 1;
    joined = second.Join();
  }
  Roster Next(uint32_t number, const RosterEntry& holder) {
    return MakeRoster({.number = number, .parent = number - 1, .resume = first.agent().held()},
                      {holder, behind});
  }
  void InstallAt(PlayedWorker& worker, const Roster& roster) {
    worker.agent().Reset(roster.id);
    worker.agent().SendRoster(roster);
  }

  RosterEntry behind;
  std::future<Status> joined;
};

TEST_CASE("A member that is behind outlives the fence of the holder that it asks") {
  OneBehind pair;
  const Roster lost = pair.Next(2, pair.Holder(pair.first, 0));
  pair.InstallAt(pair.first, lost);
  pair.first.agent().Fence();  // another loss, of which the second one's agent has not heard yet
  pair.InstallAt(pair.second, lost);
  REQUIRE(Pending(pair.joined));
  const Roster next = pair.Next(3, pair.Holder(pair.first, 0));
  pair.InstallAt(pair.first, next);
  REQUIRE(Pending(pair.joined));
  pair.second.agent().Fence();
  pair.InstallAt(pair.second, next);
  REQUIRE(Result(pair.joined).ok());
  REQUIRE(pair.second.current() == 42);
}

TEST_CASE("A member that is behind outlives the death of the only holder that it may ask") {
  OneBehind pair;
  RosterEntry gone = pair.Holder(pair.first, 0);
  gone.data.port = 1;  // nobody listens there
  pair.InstallAt(pair.second, pair.Next(2, gone));
  REQUIRE(Pending(pair.joined));
  pair.second.agent().Fence();
  const Roster next = pair.Next(3, pair.Holder(pair.first, 0));
  pair.InstallAt(pair.first, next);
  pair.InstallAt(pair.second, next);
  REQUIRE(Result(pair.joined).ok());
  REQUIRE(pair.second.current() == 42);
}

TEST_CASE("A commit whose deadline has passed is the last one of its worker") {
  Pair pair;
  pair.SumBoth();
  pair.first.next() = 5;
  auto first = pair.first.Commit(1);
  REQUIRE(Result(first).ok());
  const auto soon = Now() + std::chrono::milliseconds(20);
  REQUIRE(pair.first.session().Commit(2, soon).code() == StatusCode::kDeadlineExceeded);
  REQUIRE(pair.first.session().Commit(2, std::nullopt).code() == StatusCode::kDeadlineExceeded);
  REQUIRE(pair.first.session().Finish(std::nullopt).code() == StatusCode::kDeadlineExceeded);
  REQUIRE(pair.first.agent().held().step == 1);
}

TEST_CASE("A join whose deadline passes while the first state is shared cannot be called again") {
  TestFolder folder;
  PlayedWorker silent(folder, 1);
  PlayedWorker worker(folder, 2);
  const auto join = [](PlayedWorker& of, std::chrono::milliseconds limit) {
    return std::async(std::launch::async,
                      [&of, limit] { return of.session().Join(Now() + limit); });
  };
  // Its runtime enters, its program does not.
  auto left = join(silent, std::chrono::milliseconds(1));
  const RosterEntry root = silent.agent().AwaitReady();
  REQUIRE(Result(left).code() == StatusCode::kDeadlineExceeded);
  auto joined = join(worker, std::chrono::milliseconds(500));
  const Roster roster = MakeRoster({.number = 1}, {root, worker.agent().AwaitReady()});
  for (PlayedWorker* member : {&silent, &worker}) {
    member->agent().Reset(roster.id);
    member->agent().SendRoster(roster);
  }
  worker.agent().Await(local::FrameKind::kEntered);
  REQUIRE(Result(joined).code() == StatusCode::kDeadlineExceeded);
  REQUIRE(worker.session().Join(std::nullopt).code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE("A newcomer enters at the commit boundary on which all members agree") {
  Pair pair;
  PlayedWorker third(pair.folder, 3);
  auto joined = third.JoinUntilReady();
  pair.PrepareGrowth(third);
  uint64_t step = 1;
  while (pair.first.session().membership()->generation.value == 1) {
    REQUIRE(step < 10000);
    pair.Step(step++);
  }
  REQUIRE(pair.second.session().membership()->generation.value == 2);
  REQUIRE(Result(joined).ok());
  REQUIRE(third.session().membership()->place.rank == 2);
  REQUIRE(third.current() == pair.first.current());
  REQUIRE(third.agent().word().generation.value == 2);
  int64_t values[3] = {1, 2, 3};
  auto a = pair.first.Sum(&values[0]);
  auto b = pair.second.Sum(&values[1]);
  auto c = third.Sum(&values[2]);
  REQUIRE(Result(a).ok());
  REQUIRE(Result(b).ok());
  REQUIRE(Result(c).ok());
  REQUIRE(values[2] == 6);
}

TEST_CASE("Finish returns when the record has come, and the worker is released in order") {
  Pair pair;
  auto first = pair.first.Finish();
  const auto frame = pair.first.agent().Await(local::FrameKind::kFinished);
  const auto finished = local::BodyOf<local::Finished>(frame);
  REQUIRE(finished.ok());
  REQUIRE(local::FromWire(finished->state) == pair.first.agent().held());
  REQUIRE(Pending(first));
  REQUIRE(pair.first.agent().phase() == Phase::kFinished);
  pair.first.agent().Send(
      local::MakeFrame(local::FrameKind::kFinishRecorded,
                       local::FinishRecorded{finished->generation, finished->state}));
  REQUIRE(Result(first).ok());
  REQUIRE(pair.first.session().done());
  pair.first.agent().Await(local::FrameKind::kLeaving);
  REQUIRE(pair.first.agent().OwnerWord() == 0);  // unlocked on purpose
  REQUIRE(pair.first.session().Commit(9, std::nullopt).code() == StatusCode::kFailedPrecondition);
  REQUIRE(pair.first.session().Barrier({}).code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("A loss before the record calls the function again with the final state") {
  Pair pair;
  auto finishing = pair.first.Finish();
  pair.first.agent().Await(local::FrameKind::kFinished);
  pair.first.agent().Fence();
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                          {pair.Holder(pair.first, 0)}));
  REQUIRE(Result(finishing).code() == StatusCode::kAborted);
  auto joined = pair.first.Join();
  REQUIRE(Result(joined).ok());
  REQUIRE(pair.first.session().membership()->generation.value == 2);
  REQUIRE(pair.first.current() == 10);
}

TEST_CASE("A newcomer that is not needed any more is told to leave") {
  TestFolder folder;
  PlayedWorker worker(folder, 1);
  auto joined = worker.JoinUntilReady();
  worker.agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  REQUIRE(Result(joined).ok());
  REQUIRE(worker.session().done());
  REQUIRE_FALSE(worker.session().membership().has_value());
}

TEST_CASE("A newcomer with a state of another size says so") {
  Pair pair;
  PlayedWorker third(pair.folder, 3, 4 * sizeof(int64_t));
  auto joined = third.JoinUntilReady();
  pair.first.agent().Fence();
  auto first = pair.first.Join();
  const Roster roster = MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                                   {pair.Holder(pair.first, 0), third.entry()});
  pair.Install(roster);
  third.agent().Reset(roster.id);
  third.agent().SendRoster(roster);
  const Status status = Result(joined);
  REQUIRE(status.code() == StatusCode::kInvalidArgument);
  REQUIRE_THAT(status.message(), Catch::Contains("has 8 bytes") && Catch::Contains("32"));
  pair.first.agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  REQUIRE(Result(first).ok());
}

TEST_CASE("The deadline of a join passes while there is no generation") {
  TestFolder folder;
  PlayedWorker worker(folder, 1);
  const Status status = worker.session().Join(Now() + std::chrono::milliseconds(30));
  REQUIRE(status.code() == StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace elastic::internal::testing
