// The collectives of members, and communicators that they create.
#include <catch2/catch.hpp>
#include <vector>

#include "collectives/limits.h"
#include "worker_runtime/link/testing/worker_pair.h"

namespace elastic::internal::testing {
namespace {

std::future<Status> Async(std::function<Status()> call) {
  return std::async(std::launch::async, std::move(call));
}

std::future<Status> Create(PlayedWorker& worker, int* number) {
  return Async([&worker, number]() -> Status {
    ASSIGN_OR_RETURN(*number, worker.session().CreateCommunicator(std::nullopt));
    return OkStatus();
  });
}

TEST_CASE("Every collective of a member gives what it should") {
  Pair pair;
  const auto both = [&](const std::function<Status(Session&, size_t)>& call) {
    auto first = Async([&] { return call(pair.first.session(), 0); });
    auto second = Async([&] { return call(pair.second.session(), 1); });
    REQUIRE(Result(first).ok());
    REQUIRE(Result(second).ok());
  };
  const int32_t in[2][2] = {{2, 3}, {5, 7}};
  int32_t out[2] = {0, 0};
  both([&](Session& at, size_t rank) {
    return at.ReduceScatter(in[rank], &out[rank], 1, DataType::kInt32, ReduceOp::kProduct, {});
  });
  REQUIRE(out[0] == 10);
  REQUIRE(out[1] == 21);
  const std::vector<size_t> bytes_of = {1, 3};
  std::string gathered[2] = {"....", "...."};
  both([&](Session& at, size_t rank) {
    const std::string own = rank == 0 ? "a" : "bcd";
    return at.AllGather(own.data(), gathered[rank].data(), bytes_of, {});
  });
  REQUIRE(gathered[0] == "abcd");
  REQUIRE(gathered[1] == "abcd");
  // Without data it is still a world collective.
  both([&](Session& at, size_t) {
    return at.AllReduce(nullptr, nullptr, 0, DataType::kUint8, ReduceOp::kSum, {});
  });
}

TEST_CASE("Communicators that ranks create carry collectives beside the others") {
  Pair pair;
  int numbers[2][2] = {};
  for (int k = 0; k < 2; ++k) {
    auto first = Create(pair.first, &numbers[0][k]);
    REQUIRE(Pending(first));
    auto second = Create(pair.second, &numbers[1][k]);
    REQUIRE(Result(first).ok());
    REQUIRE(Result(second).ok());
    REQUIRE(numbers[0][k] == k + 1);
    REQUIRE(numbers[1][k] == k + 1);
  }
  // One rank waits on each of them, the other one serves them in another order.
  int64_t values[2][2] = {{1, 10}, {2, 20}};
  const auto sum = [&](PlayedWorker& worker, int rank, int k) {
    return Async([&, rank, k] {
      return worker.session().AllReduce(&values[rank][k], &values[rank][k], 1, DataType::kInt64,
                                        ReduceOp::kSum, {.deadline = {}, .communicator = k + 1});
    });
  };
  auto a = sum(pair.first, 0, 0);
  auto b = sum(pair.first, 0, 1);
  REQUIRE(Pending(a));
  REQUIRE(Pending(b));
  pair.Step(1);
  for (const int k : {1, 0}) {
    auto served = sum(pair.second, 1, k);
    REQUIRE(Result(served).ok());
  }
  REQUIRE(Result(a).ok());
  REQUIRE(Result(b).ok());
  REQUIRE(values[0][0] == 3);
  REQUIRE(values[1][1] == 30);
  REQUIRE(pair.first.session().Barrier({.deadline = {}, .communicator = 3}).code() ==
          StatusCode::kInvalidArgument);
}

TEST_CASE("A created communicator ends with its generation, also while it is being made") {
  Pair pair;
  int numbers[2] = {};
  auto first = Create(pair.first, &numbers[0]);
  auto second = Create(pair.second, &numbers[1]);
  REQUIRE(Result(first).ok());
  REQUIRE(Result(second).ok());
  std::future<Status> waiting;
  int never = 0;
  SECTION("in a collective") {
    waiting = Async(
        [&] { return pair.first.session().Barrier({.deadline = {}, .communicator = numbers[0]}); });
  }
  SECTION("being made") { waiting = Create(pair.first, &never); }
  REQUIRE(Pending(waiting));
  pair.first.agent().Fence();
  REQUIRE(Result(waiting).code() == StatusCode::kAborted);
  pair.second.agent().Fence();
  auto joined = pair.first.Join();
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                          {pair.Holder(pair.first, 0)}));
  REQUIRE(Result(joined).ok());
  REQUIRE(pair.first.session().Barrier({.deadline = {}, .communicator = numbers[0]}).code() ==
          StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace elastic::internal::testing
