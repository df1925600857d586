// Stories of processes that end by themselves: what counts at once, and when they are killed.
#include <catch2/catch.hpp>

#include "launcher/core/agent_fixture.h"

namespace elastic::internal::agent_test {
namespace {

constexpr Duration kGrace = kGracePeriodDefault;

Roster First() {
  return MakeRoster(1, 0, GenerationKind::kInstalled, {Worker(1), Worker(2), Elsewhere(1)});
}

Directive StopDirective(Fixture& host) {
  Directive stop = host.MakeDirective();
  stop.installed = First();
  stop.stop = StopMode::kGraceful;
  return stop;
}

TEST_CASE("A worker that leaves unasked is a loss at once, but exits by itself (P13)") {
  Fixture host;
  host.Start();
  host.Install(First());
  CHECK(host.Feed(agent_event::Leaving{Worker(2)}) == "fence 7.1; fence 7.2; report");
  CHECK(host.Reported(2).life == WorkerLife::kDead);
  CHECK(host.Reported(2).cause == DeathCause::kExited);
  CHECK_FALSE(host.Reported(2).exit.has_value());
  CHECK(host.report.marks == std::vector<Mark>{{GenerationNumber{1}, Worker(2)}});

  SECTION("it exits: its own code is told, and only then the slot is free") {
    host.now += kGrace / 2;
    Directive spawn = host.MakeDirective();
    spawn.installed = First();
    CHECK(host.Feed(agent_event::DirectiveCame{spawn}).empty());
    host.Feed(agent_event::Exited{Worker(2), {false, 7}, host.Read(2)});
    CHECK(host.Reported(2).exit == ExitStatus{false, 7});
    CHECK_FALSE(host.Reported(2).released);
    CHECK(host.Feed(agent_event::DirectiveCame{host.MakeDirective()}) == "spawn 7.3");
    host.now += kGrace;
    CHECK_THAT(host.Feed(agent_event::TimePassed{}), !Catch::Contains("kill"));
  }
  SECTION("exit code 0 is a failure like any other") {
    host.Feed(agent_event::Exited{Worker(2), {false, 0}, host.Read(2)});
    CHECK_FALSE(host.Reported(2).released);
  }
  SECTION("it does not: it is killed at the end of the grace period") {
    host.now += kGrace - kMillisecond;
    CHECK_THAT(host.Feed(agent_event::TimePassed{}), !Catch::Contains("kill"));
    REQUIRE(host.core.NextDeadline().has_value());
    CHECK(*host.core.NextDeadline() <= host.now + kMillisecond);
    host.now += kMillisecond;
    CHECK_THAT(host.Feed(agent_event::TimePassed{}), Catch::Contains("kill 7.2 9"));
  }
  SECTION("what it says after that counts for nothing") {
    host.Word(2) = {GenerationNumber{1}, 5, false, true};
    host.Look(2);
    CHECK(host.Reported(2).word.commits == 0);
    CHECK(host.Feed(agent_event::Leaving{Worker(2)}).empty());
  }
}

TEST_CASE(
    "A worker that leaves in the middle of a commit is killed: its last word is needed (P5)") {
  Fixture host;
  host.Start();
  host.Install(First());
  host.Word(2).committing = true;
  host.Look(2);
  CHECK(host.Feed(agent_event::Leaving{Worker(2)}) == "fence 7.1; fence 7.2; report; kill 7.2 9");
  CHECK(host.Reported(2).life == WorkerLife::kMember);
}

TEST_CASE("A worker that leaves before it joined is no loss, and exit 0 is in order") {
  Fixture host;
  host.Feed(agent_event::Registered{kAgent, ServerIncarnation{1}});
  host.Feed(agent_event::DirectiveCame{host.MakeDirective()});
  host.Feed(agent_event::Spawned{Worker(1), 101});
  CHECK(host.Feed(agent_event::Leaving{Worker(1)}).empty());
  CHECK(host.Reported(1).life == WorkerLife::kStarting);
  host.Feed(agent_event::Exited{Worker(1), {false, 0}, host.Read(1)});
  CHECK(host.Reported(1).released);
}

TEST_CASE("A dying worker has a moment to tell how it ended, then it is killed (P13)") {
  Fixture host;
  host.Start();
  host.Install(First());
  CHECK(host.Feed(agent_event::OwnerDied{Worker(2), host.Read(2)}) ==
        "fence 7.1; fence 7.2; report");
  CHECK(host.Reported(2).life == WorkerLife::kDead);
  host.now += kDyingGrace;
  CHECK_THAT(host.Feed(agent_event::TimePassed{}), Catch::Contains("kill 7.2 9"));
  CHECK_THAT(host.Feed(agent_event::TimePassed{}), !Catch::Contains("kill"));
}

TEST_CASE("During a stop nothing is killed before the grace period's end") {
  Fixture host(3);
  host.Start();
  host.Install(First());
  host.Feed(agent_event::Leaving{Worker(3)});
  host.now += kGrace - kMillisecond;
  host.Reported(1);  // acknowledged by the directive, so that the orphan limit is far
  CHECK_THAT(host.Feed(agent_event::DirectiveCame{StopDirective(host)}),
             Catch::Contains("kill 7.1 15; kill 7.2 15; kill 7.3 15"));
  std::string text = host.Feed(agent_event::OwnerDied{Worker(1), host.Read(1)});
  text += host.Feed(agent_event::Leaving{Worker(2)});
  CHECK_THAT(text, Catch::Contains("fence 7.1"));
  host.now += kGrace - kMillisecond;
  text += host.Feed(agent_event::TimePassed{});
  CHECK_THAT(text, !Catch::Contains("kill"));
  host.Feed(agent_event::Exited{Worker(2), {false, 1}, host.Read(2)});
  host.now += kMillisecond;
  CHECK_THAT(host.Feed(agent_event::TimePassed{}),
             Catch::Contains("kill 7.1 9; kill 7.3 9") && !Catch::Contains("kill 7.2"));
}

TEST_CASE("A process that is spawned after the end of the grace period is killed") {
  Fixture host;
  host.Feed(agent_event::Registered{kAgent, ServerIncarnation{1}});
  host.Feed(agent_event::DirectiveCame{host.MakeDirective()});
  host.Feed(agent_event::DirectiveCame{StopDirective(host)});
  host.now += kGrace;
  host.Feed(agent_event::TimePassed{});
  CHECK_THAT(host.Feed(agent_event::Spawned{Worker(1), 101}), Catch::Contains("kill 7.1 9"));
}

}  // namespace
}  // namespace elastic::internal::agent_test
