#include "collectives/communicator.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

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
    case ReduceOp::kProduct: break;  // operations_test.cc
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
    REQUIRE(
        (count == 0 || std::memcmp(outputs[r].data(), outputs[0].data(), count * sizeof(T)) == 0));
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
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  const int size = GENERATE(1, 2, 3, 4, 7);
  Group group(transport, size);
  // Around the change from direct to ring, fewer elements than ranks, odd ones, many chunks.
  for (const size_t count : {0, 1, 2, 5, 1000, 2048, 2049, 4096, 4097, 70'001}) {
    CheckAllTypes(group, count);
  }
}

TEST_CASE("AllReduceOfManyChunksIsRight") {
  Group group(Transport::kTcp, 4);
  CheckAllReduce<float>(group, DataType::kFloat32, ReduceOp::kSum, (4u << 20) + 3, true);
  CheckAllReduce<double>(group, DataType::kFloat64, ReduceOp::kAverage, (1u << 20) + 1, false);
}

TEST_CASE("BroadcastAndAllGatherMoveTheRightBytesAtEverySize") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  const int size = GENERATE(1, 2, 3, 5);
  Group group(transport, size);
  const auto n = static_cast<size_t>(size);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{13}, kDirectBytesMax, kDirectBytesMax + 1,
                             size_t{3'000'001}}) {
    for (int root = 0; root < size; ++root) {
      CAPTURE(size, bytes, root);
      std::vector<Status> statuses(n);
      std::vector<std::vector<uint8_t>> spread(n), gathered(n);
      group.Run([&](int rank) {
        const auto r = static_cast<size_t>(rank);
        spread[r].assign(bytes, static_cast<uint8_t>(rank + 1));
        gathered[r].assign(n * bytes, 0xEE);
        const std::vector<uint8_t> own(bytes, static_cast<uint8_t>(rank + 100));
        statuses[r] = group.at(rank).Broadcast(spread[r].data(), bytes, root).status();
        if (statuses[r].ok()) {
          statuses[r] = group.at(rank).AllGather(own.data(), gathered[r].data(), bytes).status();
        }
      });
      std::vector<uint8_t> expected;
      for (int rank = 0; rank < size; ++rank) {
        expected.insert(expected.end(), bytes, static_cast<uint8_t>(rank + 100));
      }
      for (size_t r = 0; r < n; ++r) {
        REQUIRE(statuses[r] == OkStatus());
        REQUIRE(spread[r] == std::vector<uint8_t>(bytes, static_cast<uint8_t>(root + 1)));
        REQUIRE(gathered[r] == expected);
      }
    }
  }
}

TEST_CASE("AllGatherTakesItsInputFromItsPlaceInTheOutput") {
  Group group(Transport::kTcp, 3);
  std::vector<std::vector<int64_t>> out(3, std::vector<int64_t>(3, -1));
  std::vector<Status> statuses(3);
  group.Run([&](int rank) {
    const auto r = static_cast<size_t>(rank);
    out[r][r] = rank * 10;
    statuses[r] = group.at(rank).AllGather(&out[r][r], out[r].data(), sizeof(int64_t)).status();
  });
  for (size_t r = 0; r < 3; ++r) {
    CHECK(statuses[r] == OkStatus());
    CHECK(out[r] == std::vector<int64_t>{0, 10, 20});
  }
}

TEST_CASE("NobodyLeavesABarrierBeforeTheLastHasCome") {
  const int size = GENERATE(2, 3, 5, 8);
  Group group(Transport::kSocketPairs, size);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> come = 0;
    std::atomic<int> early = 0;
    group.Run([&](int rank) {
      ++come;
      const Event event = group.at(rank).Barrier();
      early += event.ok() && come == size ? 0 : 1;
    });
    REQUIRE(early == 0);
  }
}

TEST_CASE("MoreRanksThanAFullMeshUseRingAndDissemination") {
  const int size = kFullMeshMax + 4;
  Group group(Transport::kSocketPairs, size);
  CheckAllReduce<int64_t>(group, DataType::kInt64, ReduceOp::kSum, 3, true);
  CheckAllReduce<float>(group, DataType::kFloat32, ReduceOp::kAverage, 5000, false);
}

TEST_CASE("SeveralCommunicatorsOfOneGenerationDoNotMix") {
  const auto contexts = TcpContexts(4);
  auto first = TcpMeshes(contexts, 1, Channel::kMain);
  auto second = TcpMeshes(contexts, 1, Channel::kCreated);
  FakeInterrupt interrupt;
  std::vector<std::unique_ptr<Communicator>> a, b;
  for (size_t rank = 0; rank < 4; ++rank) {
    a.push_back(std::make_unique<Communicator>(std::move(first[rank]), interrupt));
    b.push_back(std::make_unique<Communicator>(std::move(second[rank]), interrupt));
  }
  std::array<std::array<std::string, 2>, 4> wrong;
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < 4; ++rank) {
      for (size_t which = 0; which < 2; ++which) {  // both are in use at one time
        threads.emplace_back([&, rank, which] {
          Communicator& communicator = *(which == 0 ? a : b)[rank];
          std::string& text = wrong[rank][which];
          std::vector<int64_t> data(50'000);
          for (int64_t step = 1; step <= 60 && text.empty(); ++step) {
            const int64_t factor = which == 0 ? step : -step;
            std::ranges::fill(data, factor * static_cast<int64_t>(rank + 1));
            const Event event = communicator.AllReduce(data.data(), data.data(), data.size(),
                                                       DataType::kInt64, ReduceOp::kSum);
            const bool right =
                event.ok() && data.front() == factor * 10 && data.back() == factor * 10;
            text = right ? "" : StrCat("step ", step, ": ", event.status().ToString());
          }
        });
      }
    }
  }
  for (const auto& texts : wrong) {
    CHECK(texts[0].empty());
    CHECK(texts[1].empty());
  }
}

TEST_CASE("RandomSequencesOfOperationsStayInStep") {
  const uint64_t seed = Catch::rngSeed();
  INFO("run with --rng-seed " << seed);
  const int size = GENERATE(2, 3, 6);
  Group group(Transport::kTcp, size);
  std::vector<std::string> wrong(static_cast<size_t>(size));
  group.Run([&](int rank) {
    Rng rng(seed);  // the same choices on every rank
    Communicator& communicator = group.at(rank);
    std::string& text = wrong[static_cast<size_t>(rank)];
    for (int i = 0; i < 120 && text.empty(); ++i) {
      const size_t count = rng.Chance(1, 4) ? rng.Below(60'000) : rng.Below(40);
      const auto root = static_cast<int>(rng.Below(static_cast<uint64_t>(size)));
      const uint64_t kind = rng.Below(4);
      std::vector<int64_t> data(count, rank + 1);
      std::vector<int64_t> all(count * static_cast<size_t>(size));
      const size_t bytes = count * sizeof(int64_t);
      Status status;
      bool right = true;
      if (kind == 0) {
        status = communicator
                     .AllReduce(data.data(), data.data(), count, DataType::kInt64, ReduceOp::kSum)
                     .status();
        right = std::ranges::count(data, size * (size + 1) / 2) == static_cast<long>(count);
      } else if (kind == 1) {
        status = communicator.Broadcast(data.data(), bytes, root).status();
        right = std::ranges::count(data, root + 1) == static_cast<long>(count);
      } else if (kind == 2) {
        status = communicator.AllGather(data.data(), all.data(), bytes).status();
        for (size_t k = 0; k < all.size(); ++k) {
          right &= all[k] == static_cast<int64_t>(k / count) + 1;
        }
      } else {
        status = communicator.Barrier().status();
      }
      if (!status.ok() || !right) {
        text = StrCat("operation ", i, " of kind ", kind, ": ", status.ToString());
      }
    }
  });
  for (const std::string& text : wrong) {
    CHECK(text.empty());
  }
}

TEST_CASE("AWorldOfOneNeedsNobody") {
  Group group(Transport::kTcp, 1);
  Communicator& communicator = group.at(0);
  std::array<int64_t, 3> in{1, 2, 3}, out{};
  CHECK(
      communicator.AllReduce(in.data(), out.data(), 3, DataType::kInt64, ReduceOp::kAverage).ok());
  CHECK(out == in);
  CHECK(communicator.Broadcast(in.data(), sizeof in, 0).ok());
  CHECK(communicator.AllGather(in.data(), out.data(), sizeof in).ok());
  CHECK(communicator.Barrier().ok());
  const Agreement own = Agreement::Of(3, kStopByProgram, {.commits = 1, .rank = 0, .step = 4});
  communicator.Contribute(own);
  CHECK(communicator.Agree().ok());
  CHECK(communicator.agreed() == own);
  communicator.Abort();
  CHECK(communicator.Barrier().status().code() == StatusCode::kAborted);
}

TEST_CASE("ANotANumberOnOneRankIsSeenByAll") {
  const ReduceOp op = GENERATE(ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum);
  const int bad = GENERATE(0, 1, 2);
  Group group(Transport::kSocketPairs, 3);
  std::array<std::array<float, 2>, 3> out{};
  group.Run([&](int rank) {
    const std::array<float, 2> in{rank == bad ? NAN : 1.0f, 2.0f};
    (void)group.at(rank).AllReduce(in.data(), out[static_cast<size_t>(rank)].data(), 2,
                                   DataType::kFloat32, op);
  });
  for (const auto& result : out) {
    CHECK(std::isnan(result[0]));
    CHECK_FALSE(std::isnan(result[1]));
  }
}
