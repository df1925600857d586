#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "worker_runtime/elastic_testing.h"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

struct Counter {
  int64_t value;
  uint64_t step;
  uint64_t last;  // step at which training ends; 0: not known yet
};

constexpr uint64_t kStepsAfterALoss = 100;

// Adds up ones, one step at a time, and says each step. Ends some steps after the first loss, so
// that no machine is too busy for the test to be there before the end.
int CountSteps(Rank& rank) {
  const int ranks = std::atoi(rank.arguments().at(0).c_str());
  State<Counter> state;
  Runtime& runtime = rank.runtime();
  if (!runtime.CreateState(state).ok()) {
    return 3;
  }
  const Status status = runtime.Run(state, [&](State<Counter>& counter) {
    rank.Say("entered " + std::to_string(runtime.size()));
    while (counter.current().last == 0 || counter.current().step < counter.current().last) {
      const Counter now = counter.current();
      int64_t one = 1;
      ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(&one, 1, Op::kMax));
      const bool loss = now.last == 0 && runtime.size() < ranks;
      counter.next() = {now.value + one, now.step + 1,
                        loss ? now.step + kStepsAfterALoss : now.last};
      ELASTIC_RETURN_IF_ERROR(runtime.Commit(counter.next().step));
      rank.Say("step " + std::to_string(counter.current().step));
    }
    return Status();
  });
  const Counter& end = state.current();
  const bool right =
      end.last != 0 && end.step == end.last && end.value == static_cast<int64_t>(end.step);
  rank.Say(right ? "right" : "wrong");
  return status.ok() ? 0 : 4;
}

int ExitWithTheArgument(Rank& rank) { return std::atoi(rank.arguments().at(0).c_str()); }

int SaySlot(Rank& rank) {
  rank.Say("slot " + std::to_string(rank.slot()) + " of\na line");
  State<Counter> state;
  if (!rank.runtime().CreateState(state).ok()) {
    return 3;
  }
  return rank.runtime().Run(state, [](State<Counter>&) { return Status(); }).ok() ? 0 : 4;
}

TEST_CASE("The ranks of a cluster run the function and its exit code is the job's") {
  Cluster cluster(3);
  const Status started = cluster.Start(SaySlot);
  INFO(started.message());
  REQUIRE(started.ok());
  for (const char* text : {"slot 0 of a line", "slot 1 of a line", "slot 2 of a line"}) {
    const Status said = cluster.WaitFor(text);
    INFO(said.message());
    REQUIRE(said.ok());
  }
  const Status ended = cluster.Wait();
  INFO(ended.message());
  REQUIRE(ended.ok());
  REQUIRE(cluster.exit_code() == 0);
  std::set<std::string> names;
  for (const Message& message : cluster.messages()) {
    names.insert(message.incarnation);
    REQUIRE(message.text == "slot " + std::to_string(message.slot) + " of a line");
  }
  REQUIRE(names.size() == 3);
}

TEST_CASE("A killed rank is replaced and every step is counted once") {
  Cluster cluster({.ranks = 3, .min_ranks = 2, .flags = {}, .launcher = {}});
  REQUIRE(cluster.Start(CountSteps, {"3"}).ok());
  const Status running = cluster.WaitFor("step 20", 3);
  INFO(running.message());
  REQUIRE(running.ok());
  REQUIRE(cluster.Kill(1).ok());
  const Status ended = cluster.Wait();
  INFO(ended.message());
  REQUIRE(ended.ok());
  // A replacement that was not needed any more has no state.
  const auto messages = cluster.messages();
  const auto said = [&messages](std::string_view text) {
    return std::count_if(messages.begin(), messages.end(),
                         [text](const Message& message) { return message.text == text; });
  };
  REQUIRE(said("right") >= 2);
  REQUIRE(said("entered 2") >= 2);
}

TEST_CASE("A stopped rank is lost after a beat, and the job goes on without it") {
  Cluster cluster({.ranks = 2, .min_ranks = 1, .flags = {}, .launcher = {}});
  REQUIRE(cluster.Start(CountSteps, {"0"}).ok());  // for ever
  REQUIRE(cluster.WaitFor("step 10", 2).ok());
  REQUIRE(cluster.Stop(0).ok());
  const Status alone = cluster.WaitFor("entered 1");
  INFO(alone.message());
  REQUIRE(alone.ok());
}  // and the cluster's end stops the job

TEST_CASE("A job that fails is told with its exit code and its output") {
  Cluster cluster(2);
  REQUIRE(cluster.Start(ExitWithTheArgument, {"7"}).ok());
  const Status ended = cluster.Wait();
  REQUIRE(ended.code() == Code::kInternal);
  REQUIRE(cluster.exit_code() == 1);
  REQUIRE_THAT(ended.message(), Catch::Contains("exit code 1") && Catch::Contains("exit code 7"));
  const Status never = cluster.WaitFor("something");
  REQUIRE(never.code() == Code::kFailedPrecondition);
  REQUIRE(cluster.Kill(0).code() == Code::kFailedPrecondition);
}

TEST_CASE("A wait ends at its limit and names what was said so far") {
  Cluster cluster(1);
  REQUIRE(cluster.Start(CountSteps, {"0"}).ok());
  REQUIRE(cluster.WaitFor("step 1").ok());
  const Status late = cluster.WaitFor("step 0", 2, milliseconds(1));
  REQUIRE(late.code() == Code::kDeadlineExceeded);
  REQUIRE_THAT(late.message(), Catch::Contains("'step 0' was said 0 times, not 2"));
  REQUIRE(cluster.Wait(milliseconds(1)).code() == Code::kDeadlineExceeded);
  REQUIRE(cluster.exit_code() == -1);
}

TEST_CASE("What cannot be started is refused with what to change") {
  REQUIRE(Cluster(0).Start(SaySlot).code() == Code::kInvalidArgument);
  REQUIRE(
      Cluster({.ranks = 2, .min_ranks = 3, .flags = {}, .launcher = {}}).Start(SaySlot).code() ==
      Code::kInvalidArgument);
  const Status none =
      Cluster({.ranks = 1, .min_ranks = 1, .flags = {}, .launcher = "/no/elastic-run"})
          .Start(SaySlot);
  REQUIRE(none.code() == Code::kFailedPrecondition);
  REQUIRE_THAT(none.message(), Catch::Contains("ELASTIC_RUN"));
  Cluster cluster(1);
  REQUIRE(cluster.Kill(0).code() == Code::kFailedPrecondition);
  REQUIRE(cluster.Wait().code() == Code::kFailedPrecondition);
  REQUIRE(cluster.Start(SaySlot).ok());
  REQUIRE(cluster.Start(SaySlot).code() == Code::kFailedPrecondition);
}

}  // namespace
}  // namespace elastic::testing
