#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>

#include "worker_runtime/link/testing/played_worker.h"

namespace elastic::internal::testing {

inline void InstallAt(std::initializer_list<PlayedWorker*> workers, const Roster& roster) {
  for (PlayedWorker* worker : workers) {
    if (roster.Find(worker->agent().self()) != nullptr) {
      worker->agent().Reset(roster.id);
      worker->agent().SendRoster(roster);
    }
  }
}

// A world collective: after it each of them may commit once without the other.
inline int64_t SumOf(PlayedWorker& first, PlayedWorker& second) {
  int64_t sums[2] = {1, 2};
  auto first_sum = first.Sum(&sums[0]);
  auto second_sum = second.Sum(&sums[1]);
  REQUIRE(Result(first_sum).ok());
  REQUIRE(Result(second_sum).ok());
  REQUIRE(sums[0] == sums[1]);
  return sums[0];
}

// Two members of generation 1 that have committed version 0 with state 10.
struct Pair {
  Pair() {
    first.current() = 10;
    second.current() = 20;
    auto first_joined = first.JoinUntilReady();
    auto second_joined = second.JoinUntilReady();
    Install(MakeRoster({.number = 1}, {first.entry(), second.entry()}));
    REQUIRE(Result(first_joined).ok());
    REQUIRE(Result(second_joined).ok());
  }

  void Install(const Roster& roster) { InstallAt({&first, &second}, roster); }
  int64_t SumBoth() { return SumOf(first, second); }

  // Generation 2 with `third`, which is ready: told to all three, entered at a commit.
  void PrepareGrowth(PlayedWorker& third) {
    RosterEntry first_entry = first.entry();
    RosterEntry second_entry = second.entry();
    first_entry.previous_rank = 0;
    second_entry.previous_rank = 1;
    const Roster prepared =
        MakeRoster({.number = 2, .parent = 1, .kind = GenerationKind::kPrepared},
                   {first_entry, second_entry, third.entry()});
    for (PlayedWorker* worker : {&first, &second, &third}) {
      worker->agent().SendRoster(prepared);
    }
  }

  // Both sum, write the sum into `next` and commit.
  void Step(uint64_t step) {
    const int64_t sum = SumBoth();
    first.next() = first.current() + sum;
    second.next() = second.current() + sum;
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

  TestFolder folder;
  PlayedWorker first{folder, 1};
  PlayedWorker second{folder, 2};
};

}  // namespace elastic::internal::testing
