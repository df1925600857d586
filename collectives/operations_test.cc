// Every operation against a naive one.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string>

#include "collectives/communicator.h"
#include "collectives/limits.h"
#include "collectives/testing/group.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/rng.h"

using namespace elastic::internal;

namespace {

using Catch::Matchers::Contains;

// Floating point numbers whose sums and products are exact in any order; integers that wrap, but
// where an average is wanted.
template <class T>
std::vector<T> Input(size_t count, ReduceOp op, Rng& rng) {
  std::vector<T> numbers;
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr std::array<T, 6> kPowers{-2, -1, T(-0.5), T(0.5), 1, 2};
      numbers.push_back(kPowers[rng.Below(kPowers.size())]);
    } else if (op == ReduceOp::kAverage) {
      numbers.push_back(static_cast<T>(rng.Below(100)));
    } else {
      numbers.push_back(static_cast<T>(rng.Below(~uint64_t{0})));
    }
  }
  return numbers;
}

template <class T>
T Combine(ReduceOp op, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // wraps as is defined
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage: return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case ReduceOp::kProduct: return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ReduceOp::kMin: return std::min(a, b);
    case ReduceOp::kMax: return std::max(a, b);
  }
  return a;
}

template <class T>
std::vector<T> Naive(const std::vector<std::vector<T>>& inputs, ReduceOp op) {
  std::vector<T> result = inputs.front();
  for (size_t i = 0; i < result.size(); ++i) {
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      result[i] = Combine(op, result[i], inputs[rank][i]);
    }
    if (op == ReduceOp::kAverage) {
      result[i] = static_cast<T>(result[i] / static_cast<T>(inputs.size()));
    }
  }
  return result;
}

struct Reduction {
  DataType type;
  ReduceOp op;
  size_t count;  // elements of a part
};

// One rank's share of a reduce-scatter, into memory of its own and in place, and of an allreduce.
// Returns what went wrong: Catch2's assertions are not for threads.
template <class T>
std::string Reduce(Communicator& communicator, const Reduction& what) {
  const auto size = static_cast<size_t>(communicator.size());
  const auto rank = static_cast<size_t>(communicator.rank());
  Rng rng(what.count + 1);  // the same numbers on every rank
  std::vector<std::vector<T>> inputs;
  for (size_t r = 0; r < size; ++r) {
    inputs.push_back(Input<T>(size * what.count, what.op, rng));
  }
  const std::vector<T> expected = Naive(inputs, what.op);
  const auto* part = expected.data() + rank * what.count;
  const auto wrong = [&](const char* name, const Event& event) {
    return StrCat(name, " of type ", static_cast<int>(what.type), ", reduction ",
                  static_cast<int>(what.op), ", ", size, " x ", what.count,
                  " elements: ", event.status().ToString());
  };

  std::vector<T> out(what.count);
  Event event =
      communicator.ReduceScatter(inputs[rank].data(), out.data(), what.count, what.type, what.op);
  if (!event.ok() || !std::equal(out.begin(), out.end(), part)) {
    return wrong("reduce-scatter", event);
  }
  std::vector<T> all = inputs[rank];
  T* own = all.data() + rank * what.count;
  event = communicator.ReduceScatter(all.data(), own, what.count, what.type, what.op);
  if (!event.ok() || !std::equal(own, own + what.count, part)) {
    return wrong("reduce-scatter in place", event);
  }
  all = inputs[rank];
  event = communicator.AllReduce(all.data(), all.data(), all.size(), what.type, what.op);
  if (!event.ok() || all != expected) {
    return wrong("allreduce", event);
  }
  return "";
}

std::string ReduceAs(Communicator& communicator, const Reduction& what) {
  switch (what.type) {
    case DataType::kFloat32: return Reduce<float>(communicator, what);
    case DataType::kFloat64: return Reduce<double>(communicator, what);
    case DataType::kInt64: return Reduce<int64_t>(communicator, what);
    case DataType::kInt32: return Reduce<int32_t>(communicator, what);
    case DataType::kUint8: return Reduce<uint8_t>(communicator, what);
  }
  return "";
}

void CheckReductions(Group& group, const std::vector<Reduction>& reductions) {
  std::vector<std::string> wrong(static_cast<size_t>(group.size()));
  group.Run([&](int rank) {
    std::string& text = wrong[static_cast<size_t>(rank)];
    for (const Reduction& what : reductions) {
      text = text.empty() ? ReduceAs(group.at(rank), what) : text;
    }
  });
  for (const std::string& text : wrong) {
    CHECK(text.empty());
  }
}

constexpr std::array kTypes{DataType::kFloat32, DataType::kFloat64, DataType::kInt64,
                            DataType::kInt32, DataType::kUint8};
constexpr std::array kOps{ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                          ReduceOp::kProduct};

// All types and reductions; `bytes` are those of a part.
std::vector<Reduction> AllReductions(const std::vector<size_t>& bytes) {
  std::vector<Reduction> reductions;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const size_t part : bytes) {
        if (type != DataType::kUint8 || op != ReduceOp::kAverage) {
          reductions.push_back({type, op, part / SizeOf(type)});
        }
      }
    }
  }
  return reductions;
}

}  // namespace

TEST_CASE("ReductionsOfEveryTypeGiveWhatANaiveOneGives") {
  const int size = GENERATE(range(1, 10));
  CAPTURE(size);
  Group group(Transport::kSocketPairs, size);
  // Nothing, one element, and around the change from direct to ring.
  CheckReductions(group, AllReductions({0, 8, 40, kDirectBytesMax, kDirectBytesMax + 8}));
}

TEST_CASE("ReductionsAreRightAroundTheSizeOfTheScratchMemory") {
  Group group(Transport::kTcp, 3);
  CheckReductions(group, {{DataType::kFloat32, ReduceOp::kProduct, kScratchBytes / 4 - 1},
                          {DataType::kInt32, ReduceOp::kSum, kScratchBytes / 4},
                          {DataType::kUint8, ReduceOp::kMax, kScratchBytes + 1},
                          {DataType::kInt64, ReduceOp::kProduct, kReceiveBytesMax / 8 + 1}});
}

TEST_CASE("MoreRanksThanAFullMeshScatterAlongTheRing") {
  Group group(Transport::kSocketPairs, kFullMeshMax + 3);
  CheckReductions(group, {{DataType::kInt32, ReduceOp::kSum, 0},
                          {DataType::kInt32, ReduceOp::kProduct, 1},
                          {DataType::kFloat64, ReduceOp::kAverage, 3000}});
}

TEST_CASE("PartsOfAnySizesAreGatheredInTheirPlaces") {
  const auto transport = GENERATE(Transport::kSocketPairs, Transport::kTcp);
  const int size = GENERATE(range(1, 10));
  Group group(transport, size);
  const auto n = static_cast<size_t>(size);
  // Rank r's bytes; the largest part decides between direct and ring.
  const auto sizes = [&](size_t largest, size_t step) {
    std::vector<size_t> bytes_of;
    for (size_t r = 0; r < n; ++r) {
      bytes_of.push_back(largest > r * step ? largest - r * step : 0);
    }
    return bytes_of;
  };
  for (const std::vector<size_t>& bytes_of :
       {sizes(0, 0), sizes(1, 1), sizes(7, 3), sizes(kDirectBytesMax, 5),
        sizes(kDirectBytesMax + 1, kDirectBytesMax), sizes(300'001, 40'000)}) {
    CAPTURE(size, bytes_of);
    std::vector<uint8_t> expected;
    for (size_t r = 0; r < n; ++r) {
      expected.insert(expected.end(), bytes_of[r], static_cast<uint8_t>(r + 100));
    }
    std::vector<Status> statuses(n);
    std::vector<std::vector<uint8_t>> out(n);
    group.Run([&](int rank) {
      const auto r = static_cast<size_t>(rank);
      const std::vector<uint8_t> own(bytes_of[r], static_cast<uint8_t>(r + 100));
      out[r].assign(expected.size(), 0xEE);
      statuses[r] = group.at(rank).AllGatherV(own.data(), out[r].data(), bytes_of).status();
    });
    for (size_t r = 0; r < n; ++r) {
      REQUIRE(statuses[r] == OkStatus());
      REQUIRE(out[r] == expected);
    }
  }
}

TEST_CASE("RanksThatGiveOtherSizesOfTheSameSumAreToldBoth") {
  Group group(Transport::kTcp, 2);
  std::array<Status, 2> statuses;
  group.Run([&](int rank) {
    const std::array<uint8_t, 3> own{};
    std::array<uint8_t, 3> out{};
    const std::vector<size_t> bytes_of =
        rank == 0 ? std::vector<size_t>{1, 2} : std::vector<size_t>{2, 1};
    statuses[static_cast<size_t>(rank)] =
        group.at(rank).AllGatherV(own.data(), out.data(), bytes_of).status();
  });
  for (const Status& status : statuses) {
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(status.message(), Contains("allgather number 1 (3 bytes in unequal parts"));
  }
}

TEST_CASE("WrongArgumentsOfAReductionAreRefusedAndNothingIsSent") {
  Group group(Transport::kTcp, 2);
  Communicator& communicator = group.at(0);
  std::array<uint8_t, 8> data{};
  const auto scatter = [&](void* out, size_t count, DataType type, ReduceOp op) {
    return communicator.ReduceScatter(data.data(), out, count, type, op).status();
  };
  CHECK_THAT(scatter(data.data(), 4, DataType::kUint8, ReduceOp::kAverage).message(),
             Contains("no average of u8"));
  CHECK_THAT(scatter(data.data() + 1, 4, DataType::kUint8, ReduceOp::kSum).message(),
             Contains("this rank's part"));
  CHECK_THAT(scatter(nullptr, 4, DataType::kUint8, ReduceOp::kSum).message(), Contains("part"));
  CHECK_THAT(scatter(data.data(), ~size_t{0} / 2, DataType::kInt32, ReduceOp::kSum).message(),
             Contains("over the limit"));
  CHECK_THAT(
      communicator.AllGatherV(data.data(), data.data(), std::vector<size_t>{1}).status().message(),
      Contains("for each of 2 ranks, got 1"));
  CHECK(communicator.failure().ok());
}

TEST_CASE("ADeathInTheMiddleOfALargeReduceScatterEndsItOnAllRanks") {
  const int victim = GENERATE(0, 1, 3);
  CAPTURE(victim);
  Group group(Transport::kTcp, 4);
  constexpr size_t kCount = 4u << 20;  // far more than sockets hold: nobody is done before the end
  std::array<Status, 4> statuses;
  std::vector<std::unique_ptr<BlockedThread>> threads;
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == victim) {
      continue;
    }
    threads.push_back(std::make_unique<BlockedThread>([&, rank] {
      const std::vector<float> in(4 * kCount, 1.0f);
      std::vector<float> out(kCount);
      statuses[static_cast<size_t>(rank)] =
          group.at(rank)
              .ReduceScatter(in.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum)
              .status();
    }));
  }
  for (const auto& thread : threads) {
    thread->AwaitAsleep();  // the parts before the victim's are under way
  }
  group.Kill(victim);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != victim) {
      group.interrupt(rank).End({1});  // those that are no neighbours hear of it by the mark
    }
  }
  for (const auto& thread : threads) {
    thread->Join();
  }
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != victim) {
      const StatusCode code = statuses[static_cast<size_t>(rank)].code();
      CHECK((code == StatusCode::kAborted || code == StatusCode::kUnavailable));
    }
  }
}
