#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include "worker_runtime/elastic_sampler.h"

namespace elastic {
namespace {

// Ids of one pass with a size that changes at every step as `sizes` says.
std::vector<uint64_t> IdsOfPass(const Sampler& sampler, uint64_t epoch,
                                const std::vector<int>& sizes) {
  std::vector<uint64_t> ids;
  size_t step = 0;
  for (Cursor at{epoch, 0}; at.epoch == epoch; at = sampler.After(at), ++step) {
    const int size = sizes[step % sizes.size()];
    uint64_t batch = 0;
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<uint64_t> share = sampler.Share(at, rank, size);
      ids.insert(ids.end(), share.begin(), share.end());
      batch += share.size();
    }
    REQUIRE(batch == sampler.BatchSize(at));
  }
  return ids;
}

bool EachOnce(const std::vector<uint64_t>& ids, uint64_t samples) {
  const std::set<uint64_t> distinct(ids.begin(), ids.end());
  return ids.size() == samples && distinct.size() == samples && *distinct.rbegin() == samples - 1;
}

TEST_CASE("Every sample of a pass is used exactly once for all small counts, batches and sizes") {
  for (uint64_t samples = 1; samples <= 40; ++samples) {
    for (uint64_t batch = 1; batch <= samples + 1; ++batch) {
      const Sampler sampler({.samples = samples, .batch = batch, .seed = samples * 64 + batch});
      for (int size = 1; size <= 5; ++size) {
        REQUIRE(EachOnce(IdsOfPass(sampler, 3, {size}), samples));
      }
    }
  }
}

TEST_CASE("The ids of a step do not depend on the size") {
  const Sampler sampler({.samples = 1000, .batch = 48, .seed = 7});
  const std::vector<uint64_t> alone = IdsOfPass(sampler, 0, {1});
  REQUIRE(IdsOfPass(sampler, 0, {4}) == alone);
  REQUIRE(IdsOfPass(sampler, 0, {4, 3, 3, 2, 5, 48, 100}) == alone);
}

TEST_CASE("The last short batch of a pass is used") {
  const Sampler sampler({.samples = 100, .batch = 48, .seed = 1});
  const Cursor last = sampler.After(sampler.After({}));
  REQUIRE(last.epoch == 0);
  REQUIRE(last.position == 96);
  REQUIRE(sampler.BatchSize(last) == 4);
  REQUIRE(sampler.Share(last, 0, 5).size() == 1);
  REQUIRE(sampler.Share(last, 4, 5).empty());
  REQUIRE(sampler.After(last).epoch == 1);
  REQUIRE(sampler.After(last).position == 0);
}

TEST_CASE("Shares of a batch differ by at most one sample") {
  const Sampler sampler({.samples = 1000, .batch = 50, .seed = 1});
  for (int size = 1; size <= 60; ++size) {
    const size_t most = sampler.Share({}, 0, size).size();
    const size_t least = sampler.Share({}, size - 1, size).size();
    REQUIRE(most - least <= 1);
  }
}

TEST_CASE("Passes and seeds have orders of their own, and the same one gives the same order") {
  const Sampler one({.samples = 1000, .batch = 100, .seed = 1});
  const Sampler again({.samples = 1000, .batch = 100, .seed = 1});
  const Sampler two({.samples = 1000, .batch = 100, .seed = 2});
  REQUIRE(IdsOfPass(one, 0, {1}) == IdsOfPass(again, 0, {2}));
  REQUIRE(IdsOfPass(one, 0, {1}) != IdsOfPass(one, 1, {1}));
  REQUIRE(IdsOfPass(one, 0, {1}) != IdsOfPass(two, 0, {1}));
}

// A permutation that leaves neighbours together would give batches of one class from a sorted data
// set: over the first batch, ids must come from all tenths of the data.
TEST_CASE("A batch draws from the whole data set") {
  const Sampler sampler({.samples = 60000, .batch = 256, .seed = 1});
  std::vector<int> tenths(10);
  for (const uint64_t id : sampler.Share({}, 0, 1)) {
    ++tenths[id / 6000];
  }
  for (const int count : tenths) {
    REQUIRE(count >= 8);
    REQUIRE(count <= 50);
  }
}

}  // namespace
}  // namespace elastic
