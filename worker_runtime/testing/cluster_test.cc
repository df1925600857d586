#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "worker_runtime/elastic_testing.h"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

struct Counter {
  int64_t value;
  uint64_t step;
};

// Adds up ones, one step at a time, up to the step in its first argument, and says each step. At
// step 5 it waits for ever if it is to: then the test decides when it goes on.
int CountSteps(Rank& rank) {
  const auto steps = static_cast<uint64_t>(std::atoi(rank.arguments().at(0).c_str()));
  State<Counter> state;
  Runtime& runtime = rank.runtime();
  if (!runtime.CreateState(state).ok()) {
    return 3;
  }
  const Status status = runtime.Run(state, [&](State<Counter>& counter) {
    rank.Say("entered " + std::to_string(runtime.size()));
    while (counter.current().step < steps) {
      int64_t one = 1;
      ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(&one, 1, Op::kMax));
      counter.next() = {counter.current().value + one, counter.current().step + 1};
      ELASTIC_RETURN_IF_ERROR(runtime.Commit(counter.next().step));
      rank.Say("step " + std::to_string(counter.current().step));
    }
    return Status();
  });
  rank.Say("value " + std::to_string(state.current().value));
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
  REQUIRE(cluster.Start(CountSteps, {"4000"}).ok());
  const Status running = cluster.WaitFor("step 20", 3);
  INFO(running.message());
  REQUIRE(running.ok());
  const auto killed = cluster.messages();
  REQUIRE(cluster.Kill(1).ok());
  const Status ended = cluster.Wait();
  INFO(ended.message());
  REQUIRE(ended.ok());
  // The survivors, and the replacement if it came in time.
  const auto messages = cluster.messages();
  const auto last = std::count_if(messages.begin(), messages.end(),
                                  [](const Message& m) { return m.text == "value 4000"; });
  REQUIRE(last >= 2);
  REQUIRE(std::none_of(messages.begin(), messages.end(), [](const Message& m) {
    return m.text.compare(0, 6, "value ") == 0 && m.text != "value 4000" && m.text != "value 0";
  }));
  REQUIRE(std::any_of(messages.begin(), messages.end(),
                      [](const Message& m) { return m.text == "entered 2"; }));
}

TEST_CASE("A stopped rank is lost after a beat, and the job goes on without it") {
  Cluster cluster({.ranks = 2, .min_ranks = 1, .flags = {}, .launcher = {}});
  REQUIRE(cluster.Start(CountSteps, {"1000000"}).ok());
  REQUIRE(cluster.WaitFor("step 10", 2).ok());
  REQUIRE(cluster.Stop(0).ok());
  const Status alone = cluster.WaitFor("entered 1");
  INFO(alone.message());
  REQUIRE(alone.ok());
}  // and the cluster's end stops a job that would run for long

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
  REQUIRE(cluster.Start(CountSteps, {"1000000"}).ok());
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
