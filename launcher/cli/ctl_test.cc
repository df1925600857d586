#include <catch2/catch.hpp>

#include "launcher/cli/ctl_json.h"
#include "launcher/cli/ctl_table.h"

namespace elastic::internal {

namespace {

using namespace std::chrono_literals;

const Instant kNow = FromNanoseconds(1'000'000'000);

JobView TwoOfThree() {
  JobView view{.job_id = "run-1", .state = JobState::kEntering};
  view.wait = {.reason = WaitReason::kEntry, .have = 1, .want = 2, .who = {"rank 1 (b:0)"}};
  view.wait.until = kNow + 1500ms;
  view.wait_text = "1 of 2 members have entered; missing: rank 1 (b:0)";
  view.generation = {{1}, {7}, 0xABCull << 32};
  view.size = 2;
  view.np = 3;
  view.min_np = 2;
  view.newest = {{{6}, 120}, 0xDEF, 4321};
  view.hosts = {{.name = "a",
                 .registered = true,
                 .counted = true,
                 .agent = {4},
                 .slots = 2,
                 .heartbeat_age = 200ms},
                {.name = "b", .slots = 1}};
  WorkerReport member{.incarnation = {{4}, 2},
                      .pid = 4242,
                      .life = WorkerLife::kMember,
                      .held = view.newest,
                      .entered = true,
                      .phase = Phase::kInCollective,
                      .beat_age = 35ms};
  WorkerReport dead{.incarnation = {{4}, 1},
                    .slot = 1,
                    .pid = 4141,
                    .life = WorkerLife::kDead,
                    .cause = DeathCause::kExited,
                    .exit = ExitStatus{.signalled = true, .code = 9}};
  view.workers = {{0, "a", member}, {-1, "a", dead}};
  view.resets = {{.from = {5},
                  .to = {7},
                  .cause = "rank 1 (a:1) died: signal 9 (SIGKILL)",
                  .size_before = 3,
                  .size_after = 2,
                  .resumed = view.newest,
                  .answers = 1ms,
                  .form = 250us}};
  view.resets_total = 4;
  return view;
}

}  // namespace

TEST_CASE("The table shows ranks, hosts, what is waited for and the last changes") {
  CHECK(
      StatusTable(TwoOfThree()) ==
      "job run-1: entering\n"
      "generation 7, size 2 (-np 3, --min-np 2)\n"
      "newest committed state: step 4321 of generation 6\n"
      "waits: 1 of 2 members have entered; missing: rank 1 (b:0)\n"
      "\n"
      "HOST  SLOTS  AGENT     LAST HEARD\n"
      "a     2      in touch  200ms ago\n"
      "b     1      none      -\n"
      "\n"
      "RANK  HOST:SLOT  PID   LAST HEARD  DOING       STATE                     HAS COMMITTED\n"
      "0     a:0        4242  235ms ago   collective  member                    step 4321 of "
      "generation 6\n"
      "-     a:1        4141  -           -           dead: signal 9 (SIGKILL)  none\n"
      "\n"
      "last changes of membership (4 in all):\n"
      "GENERATION  SIZE    ALL TOLD  NEXT FORMED  ALL IN   RESUMED FROM               CAUSE\n"
      "5 -> 7      3 -> 2  1ms       250us        not yet  step 4321 of generation 6  rank 1 (a:1) "
      "died: "
      "signal 9 (SIGKILL)\n");
}

TEST_CASE("A worker that its agent killed is not shown as one that a signal hit by chance") {
  JobView view = TwoOfThree();
  view.workers[1].report.cause = DeathCause::kMarkedByServer;
  CHECK_THAT(StatusTable(view), Catch::Contains("dead: killed by its agent, as the server asked"));
  view.workers[1].report.cause = DeathCause::kStopped;
  CHECK_THAT(StatusTable(view),
             Catch::Contains("dead: was stopped (state T), killed by its agent"));
}

TEST_CASE("A job without a generation says so") {
  CHECK_THAT(StatusTable(JobView{.job_id = "x"}), Catch::Contains("no generation yet"));
}

TEST_CASE("The JSON has the same with units in its keys") {
  const std::string json = StatusJson(TwoOfThree(), kNow);
  for (const char* part :
       {"\"state\": \"entering\"", "\"reason\": \"entry\"", "\"remaining_ms\": 1500.0",
        "\"generation\": 7", "\"pid\": 4242", "\"incarnation\": \"4.2\"",
        "\"phase\": \"in_collective\"", "\"heartbeat_age_ms\": 235.0", "\"held\": null",
        "\"exit\": \"signal 9 (SIGKILL)\"", "\"form_ms\": 0.25", "\"complete\": false",
        "\"resets_total\": 4", "\"digest\": \"0000000000000def\""}) {
    INFO(part);
    CHECK_THAT(json, Catch::Contains(part));
  }
}

TEST_CASE("Text that is no UTF-8 does not spoil the JSON") {
  JobView view{.job_id = "a\"b\xff"};
  CHECK_THAT(StatusJson(view, kNow), Catch::Contains("\"job_id\": \"a\\\"b\xEF\xBF\xBD\""));
}

}  // namespace elastic::internal
