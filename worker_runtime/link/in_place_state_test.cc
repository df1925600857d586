#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "rendezvous/base/hash.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/testing/worker_pair.h"

// Whole workers whose state lies in the program's own memory.

namespace elastic::internal::testing {
namespace {

using Values = std::vector<int64_t>;

// A worker whose program has one item, "values".
struct InPlaceWorker : PlayedWorker {
  InPlaceWorker(const TestFolder& folder, uint32_t counter, Values initial, bool resizes = true)
      : PlayedWorker(folder, counter, 0), values(std::move(initial)) {
    StateItem item{.name = "values",
                   .memory = reinterpret_cast<std::byte*>(values.data()),
                   .bytes = values.size() * sizeof(int64_t),
                   .resize = {}};
    if (resizes) {
      item.resize = [this](size_t bytes) -> void* {
        values.resize(bytes / sizeof(int64_t));
        return values.data();
      };
    }
    const Status registered = session().RegisterItem(std::move(item));
    REQUIRE(registered.ok());
  }
  void Grow(Values larger) {
    values = std::move(larger);
    REQUIRE(
        session().items()->Resize("values", values.data(), values.size() * sizeof(int64_t)).ok());
  }
  Values values;
};

// Two members of generation 1 that have committed version 0 with rank 0's values.
struct InPlacePair {
  explicit InPlacePair(size_t count = 3) : first(folder, 1, Numbers(count, 10)) {
    auto first_joined = first.JoinUntilReady();
    auto second_joined = second.JoinUntilReady();
    Install(MakeRoster({.number = 1}, {first.entry(), second.entry()}));
    REQUIRE(Result(first_joined).ok());
    REQUIRE(Result(second_joined).ok());
  }
  static Values Numbers(size_t count, int64_t from) {
    Values made(count);
    std::iota(made.begin(), made.end(), from);
    return made;
  }
  void Install(const Roster& roster) { InstallAt({&first, &second}, roster); }
  void Sum() { SumOf(first, second); }
  // Both sum, change their values and commit.
  void Step(uint64_t step) {
    Sum();
    for (InPlaceWorker* worker : {&first, &second}) {
      for (int64_t& value : worker->values) {
        value += 100;
      }
    }
    auto first_commit = first.Commit(step);
    auto second_commit = second.Commit(step);
    REQUIRE(Result(first_commit).ok());
    REQUIRE(Result(second_commit).ok());
  }
  RosterEntry Holder(PlayedWorker& worker, int32_t previous_rank) {
    RosterEntry entry = worker.entry();
    entry.previous_rank = previous_rank;
    entry.holds_resume = true;
    return entry;
  }
  Roster Next(uint32_t number, std::vector<RosterEntry> entries) {
    return MakeRoster({.number = number, .parent = number - 1, .resume = first.agent().held()},
                      std::move(entries));
  }

  TestFolder folder;
  InPlaceWorker first;
  InPlaceWorker second{folder, 2, {7}};
};

void RequireHeldCopyIsWhole(const ScriptedAgent& agent) {
  const std::vector<std::byte> bytes = agent.HeldBytes();
  REQUIRE(agent.held().digest == HashBytes(bytes.data(), bytes.size()));
}

TEST_CASE("The first members take the items of rank 0, with its sizes") {
  InPlacePair pair;
  REQUIRE(pair.first.values == Values{10, 11, 12});
  REQUIRE(pair.second.values == Values{10, 11, 12});
  REQUIRE(pair.first.agent().held() == pair.second.agent().held());
  RequireHeldCopyIsWhole(pair.second.agent());
  REQUIRE(pair.second.session().current() == nullptr);
}

TEST_CASE("A commit copies the items, and a change after it does not reach the copy") {
  InPlacePair pair;
  pair.Step(1);
  pair.first.values = {0, 0, 0};
  REQUIRE(pair.first.agent().held().step == 1);
  REQUIRE(pair.first.agent().held() == pair.second.agent().held());
  RequireHeldCopyIsWhole(pair.first.agent());
  REQUIRE(pair.first.agent().HeldBytes() == pair.second.agent().HeldBytes());
}

TEST_CASE("Each of two losses in a row restores the committed items") {
  InPlacePair pair;
  pair.Step(1);
  for (uint32_t number = 2; number <= 3; ++number) {
    pair.first.values[1] = 999;  // in the middle of the first step after a restore, too
    pair.first.agent().Fence();
    auto joined = pair.first.Join();
    pair.Install(pair.Next(number, {pair.Holder(pair.first, 0)}));
    REQUIRE(Result(joined).ok());
    REQUIRE(pair.first.values == Values{110, 111, 112});
    RequireHeldCopyIsWhole(pair.first.agent());
    REQUIRE(pair.first.session().recovery_times().restored > 0);
  }
}

TEST_CASE("A loss after an item has grown restores its old size and its old values") {
  InPlacePair pair;
  pair.Step(1);
  pair.first.Grow(Values(size_t{1} << 17, 5));
  pair.first.agent().Fence();
  auto joined = pair.first.Join();
  pair.Install(pair.Next(2, {pair.Holder(pair.first, 0)}));
  REQUIRE(Result(joined).ok());
  REQUIRE(pair.first.values == Values{110, 111, 112});
}

TEST_CASE("A member that is behind gets the newer items, with their sizes") {
  InPlacePair pair;
  pair.Step(1);
  pair.Sum();
  pair.first.Grow(Values(size_t{1} << 17, 5));
  auto ahead = pair.first.Commit(2);
  REQUIRE(Result(ahead).ok());
  RosterEntry behind = pair.second.entry();
  behind.previous_rank = 1;
  pair.first.agent().Fence();
  pair.second.agent().Fence();
  auto first = pair.first.Join();
  auto second = pair.second.Join();
  pair.Install(pair.Next(2, {pair.Holder(pair.first, 0), behind}));
  REQUIRE(Result(first).ok());
  REQUIRE(Result(second).ok());
  REQUIRE(pair.second.values == Values(size_t{1} << 17, 5));
  REQUIRE(pair.second.agent().held() == pair.first.agent().held());
  RequireHeldCopyIsWhole(pair.second.agent());
  pair.Step(3);
  REQUIRE(pair.first.agent().held() == pair.second.agent().held());
}

TEST_CASE("A fence at any moment of a large copy leaves a whole copy, old or new") {
  InPlacePair pair(size_t{2} << 20);
  pair.Step(1);
  pair.Sum();
  auto commit = pair.first.Commit(2);
  const Instant limit = Now() + std::chrono::seconds(10);
  while (pair.first.agent().phase() != Phase::kCommitting && Pending(commit)) {
    REQUIRE(Now() < limit);
  }
  pair.first.agent().Fence();
  const Status status = Result(commit);
  REQUIRE((status.ok() || status.code() == StatusCode::kAborted));
  REQUIRE(pair.first.agent().held().step == (status.ok() ? 2 : 1));
  RequireHeldCopyIsWhole(pair.first.agent());
}

TEST_CASE("A newcomer whose items do not fit says which") {
  InPlacePair pair;
  InPlaceWorker third(pair.folder, 3, {1, 2}, false);
  auto joined = third.JoinUntilReady();
  pair.first.agent().Fence();
  auto first = pair.first.Join();
  const Roster roster = pair.Next(2, {pair.Holder(pair.first, 0), third.entry()});
  pair.Install(roster);
  third.agent().Reset(roster.id);
  third.agent().SendRoster(roster);
  const Status status = Result(joined);
  REQUIRE(status.code() == StatusCode::kInvalidArgument);
  REQUIRE_THAT(status.message(), Catch::Contains("\"values\" has 24 bytes") &&
                                     Catch::Contains("16 bytes were registered"));
  pair.first.agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  REQUIRE(Result(first).ok());
}

}  // namespace
}  // namespace elastic::internal::testing
