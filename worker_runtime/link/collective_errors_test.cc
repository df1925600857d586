#include <catch2/catch.hpp>

#include "worker_runtime/link/testing/worker_pair.h"

// What becomes of a member whose collective has failed.

namespace elastic::internal::testing {
namespace {

TEST_CASE("A lost connection is reported as an accusation and the call is aborted") {
  Pair pair;
  int64_t value = 1;
  auto blocked = pair.first.Sum(&value);
  REQUIRE(Pending(blocked));
  // What a peer of another generation does: its connections of this one close.
  pair.second.agent().Fence();
  auto second = pair.second.Join();
  pair.second.agent().Reset(GenerationId{ServerIncarnation{1}, GenerationNumber{2}, 1});
  const Roster alone = MakeRoster({.number = 2, .parent = 1, .resume = pair.second.agent().held()},
                                  {pair.Holder(pair.second, 1)});
  pair.Install(alone);
  REQUIRE(Result(second).ok());
  REQUIRE(Result(blocked).code() == StatusCode::kAborted);
  const auto frame = pair.first.agent().Await(local::FrameKind::kAccuse);
  const auto accusation = local::BodyOf<local::Accuse>(frame);
  REQUIRE(accusation.ok());
  REQUIRE(local::FromWire(accusation->accused) == pair.second.agent().self());
}

TEST_CASE("A rank that makes other calls than its peers gives up, and they are not kept waiting") {
  Pair pair;
  auto barrier = std::async(std::launch::async, [&] { return pair.first.session().Barrier({}); });
  int64_t value = 1;
  auto sum = std::async(std::launch::async, [&] {
    return pair.second.session().AllReduce(&value, &value, 1, DataType::kInt64, ReduceOp::kSum, {});
  });
  for (auto* one : {&barrier, &sum}) {
    const StatusCode code = Result(*one).code();
    REQUIRE((code == StatusCode::kInvalidArgument || code == StatusCode::kAborted));
  }
  // Wrong arguments alone are refused, and the next call is as good as ever; here nothing is.
  REQUIRE(pair.first.session().Barrier({}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Ranks that commit different steps are told both, and nothing more is committed (V7)") {
  Pair pair;
  pair.Step(1);
  pair.SumBoth();
  auto first = pair.first.Commit(2);
  auto second = pair.second.Commit(3);
  REQUIRE(Result(first).ok());
  REQUIRE(Result(second).ok());
  int64_t values[2] = {1, 2};
  std::future<Status> calls[2] = {pair.first.Sum(&values[0]), pair.second.Sum(&values[1])};
  for (auto& call : calls) {
    const Status status = Result(call);
    REQUIRE(status.code() == StatusCode::kInvalidArgument);
    REQUIRE_THAT(status.message(),
                 Catch::Contains("rank 1 has committed step 3 (its 3rd commit in this "
                                 "generation), rank 0 step 2 (its 3rd)"));
  }
  REQUIRE(pair.first.session().Commit(4, {}).code() == StatusCode::kInvalidArgument);
  // The agent is told, so that the job can end with it.
  const auto frame = pair.second.agent().Await(local::FrameKind::kProgramError);
  const auto body = local::BodyOf<local::ProgramError>(frame);
  REQUIRE(body.ok());
  REQUIRE_THAT(body->message, Catch::Contains("rank 1 has committed step 3"));
}

TEST_CASE("A rank that commits too rarely ends the job instead of waiting for ever (V7)") {
  Pair pair;
  pair.Step(1);
  pair.SumBoth();
  auto ahead = pair.first.Commit(2);
  REQUIRE(Result(ahead).ok());
  int64_t value = 1;
  int64_t other_value = 1;
  auto sum = pair.second.Sum(&value);
  std::future<Status> other;
  SECTION("the other one is in the next step") { other = pair.first.Sum(&other_value); }
  SECTION("the other one commits again") { other = pair.first.Commit(3); }
  SECTION("the other one has finished") { other = pair.first.Finish(); }
  const Status status = Result(sum);
  REQUIRE((status.code() == StatusCode::kInvalidArgument));
  REQUIRE_THAT(status.message(), Catch::Contains("rank 0 has committed step 2 (its 3rd commit in "
                                                 "this generation), rank 1 step 1 (its 2nd)"));
  pair.first.agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  (void)Result(other);
}

TEST_CASE("Wrong arguments leave the member as it is") {
  Pair pair;
  REQUIRE(pair.first.session().Broadcast(nullptr, 8, 0, {}).code() == StatusCode::kInvalidArgument);
  auto first = std::async(std::launch::async, [&] { return pair.first.session().Barrier({}); });
  REQUIRE(pair.second.session().Barrier({}).ok());
  REQUIRE(Result(first).ok());
}

}  // namespace
}  // namespace elastic::internal::testing
