// What world collectives carry beside their data (rendezvous/base/agreement.h).
#include "rendezvous/base/agreement.h"

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "collectives/communicator.h"
#include "collectives/limits.h"
#include "collectives/testing/group.h"
#include "rendezvous/base/log.h"

using namespace elastic::internal;

namespace {

using Catch::Matchers::Contains;

constexpr size_t kLarge = 100'000;  // elements of a part: far over kDirectBytesMax

struct WorldCollective {
  std::string name;
  std::function<Event(Communicator&)> run;
};

Event Reduce(Communicator& communicator, size_t count) {
  std::vector<int32_t> data(count, 1);
  return communicator.AllReduce(data.data(), data.data(), count, DataType::kInt32, ReduceOp::kSum);
}

Event Scatter(Communicator& communicator, size_t count) {
  const std::vector<int32_t> in(count * static_cast<size_t>(communicator.size()), 1);
  std::vector<int32_t> out(count);
  return communicator.ReduceScatter(in.data(), out.data(), count, DataType::kInt32, ReduceOp::kSum);
}

Event Gather(Communicator& communicator, size_t bytes) {
  const std::vector<uint8_t> in(bytes);
  std::vector<uint8_t> out(bytes * static_cast<size_t>(communicator.size()));
  return communicator.AllGather(in.data(), out.data(), bytes);
}

const std::vector<WorldCollective>& WorldCollectives() {
  static const std::vector<WorldCollective> all = {
      {"direct allreduce", [](Communicator& c) { return Reduce(c, 5); }},
      {"empty allreduce", [](Communicator& c) { return Reduce(c, 0); }},
      {"ring allreduce", [](Communicator& c) { return Reduce(c, kLarge); }},
      {"direct reduce-scatter", [](Communicator& c) { return Scatter(c, 5); }},
      {"empty reduce-scatter", [](Communicator& c) { return Scatter(c, 0); }},
      {"ring reduce-scatter", [](Communicator& c) { return Scatter(c, kLarge); }},
      {"direct allgather", [](Communicator& c) { return Gather(c, 5); }},
      {"empty allgather", [](Communicator& c) { return Gather(c, 0); }},
      {"ring allgather", [](Communicator& c) { return Gather(c, kLarge); }},
      {"barrier", [](Communicator& c) { return c.Barrier(); }},
      {"commit", [](Communicator& c) { return c.Agree(); }},
  };
  return all;
}

// Different on every rank and in every round.
Agreement Contribution(int rank, uint32_t round) {
  const auto r = static_cast<uint32_t>(rank);
  return Agreement::Of(10 * round + r % 3, r == 1 ? kStopByOperator : 0,
                       {.commits = round + (r == 2 ? 1 : 0), .rank = r, .step = 100 * round + r});
}

}  // namespace

TEST_CASE("EveryWorldCollectiveCarriesWhatAllRanksContributed") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  const int size = GENERATE(1, 2, 3, 5, 8, kFullMeshMax + 3);
  CAPTURE(size);
  Group group(transport, size);
  std::vector<std::string> wrong(static_cast<size_t>(size));
  group.Run([&](int rank) {
    Communicator& communicator = group.at(rank);
    std::string& text = wrong[static_cast<size_t>(rank)];
    uint32_t round = 0;
    for (const WorldCollective& collective : WorldCollectives()) {
      ++round;
      communicator.Contribute(Contribution(rank, round));
      const Event event = collective.run(communicator);
      Agreement all = Contribution(0, round);
      for (int other = 1; other < size; ++other) {
        all = Merge(all, Contribution(other, round));
      }
      if (!event.ok() || communicator.agreed() != all) {
        text += StrCat(collective.name, ": ", event.status().ToString(), "; ");
      }
    }
  });
  for (const std::string& text : wrong) {
    CHECK(text.empty());
  }
}

TEST_CASE("ABroadcastCarriesNoAgreement") {
  Group group(Transport::kSocketPairs, 2);
  group.Run([&](int rank) {
    group.at(rank).Contribute(Contribution(rank, 1));
    int data = 0;
    (void)group.at(rank).Broadcast(&data, sizeof data, 0);
  });
  CHECK(group.at(0).agreed() == Agreement());
  CHECK(group.at(1).agreed() == Agreement());
}

// A rank that commits more often is at another call than its peers, which would say little.
TEST_CASE("RanksAtOtherCallsBecauseTheyCommitUnequallyAreNamedWithTheirSteps") {
  Group group(Transport::kTcp, 2);
  std::array<Status, 2> statuses;
  group.Run([&](int rank) {
    Communicator& communicator = group.at(rank);
    const auto r = static_cast<uint32_t>(rank);
    communicator.Contribute(Agreement::Of(0, 0, {.commits = 4 + r, .rank = r, .step = 90 + r}));
    statuses[r] = rank == 0 ? Reduce(communicator, kLarge).status() : communicator.Agree().status();
  });
  for (const Status& status : statuses) {
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(status.message(), Contains("rank 1 has committed step 91 (its 5th commit in this "
                                          "generation), rank 0 step 90 (its 4th)"));
  }
}

TEST_CASE("AMergeIsTheSameInAnyOrderAndAnyNumberOfTimes") {
  const Agreement a = Contribution(0, 3);
  const Agreement b = Contribution(1, 3);
  const Agreement c = Contribution(2, 3);
  CHECK(Merge(Merge(a, b), c) == Merge(a, Merge(c, b)));
  CHECK(Merge(Merge(a, b), b) == Merge(b, a));
  CHECK(Merge(a, a) == a);
  CHECK(Merge(a, b).stop == kStopByOperator);
}
