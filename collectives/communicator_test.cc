#include "collectives/communicator.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "collectives/limits.h"
#include "collectives/testing/group.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/rng.h"

using namespace elastic::internal;

namespace {

// Catch2's assertions are not for threads: ranks leave what they saw, the test looks at it.
template <class T>
std::vector<std::vector<T>> RandomInputs(int size, size_t count, uint64_t seed) {
  std::vector<std::vector<T>> inputs(static_cast<size_t>(size));
  Rng rng(seed);
  for (std::vector<T>& input : inputs) {
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<int64_t>(rng.Below(2'000'001)) - 1'000'000;
      input.push_back(static_cast<T>(std::is_floating_point_v<T> ? number / 997.0 : number));
    }
  }
  return inputs;
}

double Expected(ReduceOp op, const std::vector<double>& values) {
  switch (op) {
    case ReduceOp::kSum: return std::accumulate(values.begin(), values.end(), 0.0);
    case ReduceOp::kAverage:
      return std::accumulate(values.begin(), values.end(), 0.0) /
             static_cast<double>(values.size());
    case ReduceOp::kMin: return *std::min_element(values.begin(), values.end());
    case ReduceOp::kMax: return *std::max_element(values.begin(), values.end());
  }
  return 0;
}

template <class T>
void CheckAllReduce(Group& group, DataType type, ReduceOp op, size_t count, bool in_place) {
  const int size = group.size();
  CAPTURE(size, count, static_cast<int>(type), static_cast<int>(op), in_place);
  const auto inputs = RandomInputs<T>(size, count, 7 * count + static_cast<size_t>(size));
  std::vector<std::vector<T>> outputs =
      in_place ? inputs : std::vector<std::vector<T>>(inputs.size(), std::vector<T>(count));
  std::vector<Status> statuses(inputs.size());
  group.Run([&](int rank) {
    const auto r = static_cast<size_t>(rank);
    const void* in = in_place ? outputs[r].data() : inputs[r].data();
    statuses[r] = group.at(rank).AllReduce(in, outputs[r].data(), count, type, op).status();
  });
  for (size_t r = 0; r < inputs.size(); ++r) {
    REQUIRE(statuses[r] == OkStatus());
    REQUIRE(std::memcmp(outputs[r].data(), outputs[0].data(), count * sizeof(T)) == 0);
  }
  for (size_t i = 0; i < count; i += 1 + count / 64) {
    std::vector<double> values;
    double magnitude = 1;
    for (const auto& input : inputs) {
      values.push_back(static_cast<double>(input[i]));
      magnitude += std::abs(values.back());
    }
    double expected = Expected(op, values);
    if constexpr (std::is_integral_v<T>) {
      expected = std::trunc(expected);
    }
    const double tolerance = std::is_same_v<T, float> ? 1e-6 * magnitude : 1e-13 * magnitude;
    REQUIRE(std::abs(static_cast<double>(outputs[0][i]) - expected) <= tolerance);
  }
}

void CheckAllTypes(Group& group, size_t count) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const bool in_place : {false, true}) {
      CheckAllReduce<float>(group, DataType::kFloat32, op, count, in_place);
      CheckAllReduce<double>(group, DataType::kFloat64, op, count, in_place);
      CheckAllReduce<int64_t>(group, DataType::kInt64, op, count, in_place);
    }
  }
}

}  // namespace

TEST_CASE("AllReduceGivesEveryRankTheSameBitsForEveryTypeOperationAndSize") {
  const auto transport = GENERATE(Over::kSocketPairs, Over::kTcp);
  const int size = GENERATE(1, 2, 3, 4, 7);
  Group group(transport, size);
  // Around the change from direct to ring, fewer elements than ranks, odd ones, many chunks.
  for (const size_t count : {0, 1, 2, 5, 1000, 2048, 2049, 4096, 4097, 70'001}) {
    CheckAllTypes(group, count);
  }
}

TEST_CASE("AllReduceOfManyChunksIsRight") {
  Group group(Over::kTcp, 4);
  CheckAllReduce<float>(group, DataType::kFloat32, ReduceOp::kSum, (4u << 20) + 3, true);
  CheckAllReduce<double>(group, DataType::kFloat64, ReduceOp::kAverage, (1u << 20) + 1, false);
}
