// Golden stories of the agent: whom it obeys, how long it lives, what it spawns.
#include <catch2/catch.hpp>

#include "launcher/core/agent_fixture.h"

namespace elastic::internal::agent_test {
namespace {

using std::chrono::seconds;

Roster Pair() { return MakeRoster(1, 0, GenerationKind::kInstalled, {Worker(1), Worker(2)}); }

TEST_CASE("A deposed server, an older message and another agent's orders are refused (P2)") {
  Fixture host;
  host.Start();
  Directive directive = host.MakeDirective();
  directive.server = ServerIncarnation{2};
  host.Feed(agent_event::DirectiveCame{directive});
  Directive order = host.MakeDirective();
  order.installed = Pair();
  SECTION("lower server incarnation") { order.server = ServerIncarnation{1}; }
  SECTION("older sequence") {
    order.server = ServerIncarnation{2};
    order.sequence = directive.sequence;
  }
  SECTION("an earlier life of this host's agent") {
    order.server = ServerIncarnation{2};
    order.agent = AgentIncarnation{6};
  }
  CHECK(host.Feed(agent_event::DirectiveCame{order}).empty());
  CHECK(host.Word(1) == CommitWord{});
}

TEST_CASE("An agent that was superseded kills its workers and ends (P2)") {
  Fixture host;
  host.Start();
  Directive order = host.MakeDirective();
  order.agent = AgentIncarnation{8};
  CHECK(host.Feed(agent_event::DirectiveCame{order}) == "kill 7.1 9; kill 7.2 9");
  host.Feed(agent_event::Exited{Worker(1), {true, 9}, host.Read(1)});
  CHECK(host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)}) == "report; end 1");
}

TEST_CASE("The orphan limit counts from the sending of the acknowledged report (P23)") {
  Fixture host;
  host.Start();
  const Instant sent = host.now;
  host.report = host.core.MakeReport(host.now);
  host.now += seconds(20);
  host.Feed(agent_event::DirectiveCame{host.MakeDirective()});  // acknowledges it, late
  host.now = sent + kOrphanLimitInProcess - kMillisecond;
  CHECK(host.Feed(agent_event::TimePassed{}) == "report");
  host.now = sent + kOrphanLimitInProcess;
  SECTION("its time has come") {
    CHECK(host.Feed(agent_event::TimePassed{}) == "kill 7.1 9; kill 7.2 9");
  }
  SECTION("deadlines are looked at before a message that came while it was stopped") {
    Directive order = host.MakeDirective();
    order.installed = Pair();
    CHECK(host.Feed(agent_event::DirectiveCame{order}) == "kill 7.1 9; kill 7.2 9");
    CHECK(host.Word(1) == CommitWord{});
  }
}

TEST_CASE("A stopped worker is lost at the first missed beat, a traced one is not (P23)") {
  Fixture host;
  host.Start();
  host.Install(Pair());
  CHECK(host.Feed(agent_event::BeatMissed{Worker(2), 't'}).empty());
  CHECK(host.Feed(agent_event::BeatMissed{Worker(2), 'S'}).empty());
  CHECK(host.Feed(agent_event::BeatMissed{Worker(2), 'T'}) ==
        "fence 7.1; fence 7.2; kill 7.2 9; report");
  // Killed is not dead yet: the report of a death is always true (P13).
  CHECK(host.Reported(2).life == WorkerLife::kMember);
  host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)});
  CHECK(host.Reported(2).cause == DeathCause::kStopped);
}

TEST_CASE(
    "A removed worker is killed, so that its death can be reported; a marked one is not (P13)") {
  Fixture host;
  host.Start();
  host.Install(Pair());
  Directive order = host.MakeDirective();
  order.installed = Pair();
  SECTION("marked") {
    order.closed = GenerationNumber{1};
    order.marks = {{GenerationNumber{1}, Worker(2)}};
    CHECK(host.Feed(agent_event::DirectiveCame{order}) == "fence 7.1; fence 7.2; report");
  }
  SECTION("removed") {
    order.remove = {Worker(2)};
    CHECK(host.Feed(agent_event::DirectiveCame{order}) ==
          "fence 7.1; fence 7.2; kill 7.2 9; report");
  }
}

TEST_CASE("A process that is offered again has a new name, an open way in and what it held (P20)") {
  Fixture host;
  host.Start();
  host.Install(Pair());
  host.Word(2).commits = 3;
  host.pages[Worker(2)].held.version = {GenerationNumber{1}, 3};
  Directive order = host.MakeDirective();
  order.installed = Pair();
  order.closed = GenerationNumber{1};
  order.offer_again = {Worker(2)};

  SECTION("at once") {
    CHECK(host.Feed(agent_event::DirectiveCame{order}) ==
          "fence 7.1; fence 7.2; report; reset 7.2 to 0,1; offer 7.2 as 7.3; report");
  }
  SECTION("a commit under way ends first") {
    host.Word(2).committing = true;
    CHECK(host.Feed(agent_event::DirectiveCame{order}) == "fence 7.1; fence 7.2; report");
    host.Word(2).committing = false;
    CHECK(host.Look(2) == "reset 7.2 to 0,1; offer 7.2 as 7.3; report");
  }
  const WorkerReport before = host.Reported(2);
  CHECK(before.life == WorkerLife::kDead);
  CHECK(before.cause == DeathCause::kOfferedAgain);
  CHECK(before.word.commits == 3);
  CHECK_FALSE(before.held.valid());
  const WorkerReport after = host.Reported(3);
  CHECK(after.life == WorkerLife::kWaiting);
  CHECK(after.held.version == StateVersion{GenerationNumber{1}, 3});
  CHECK(after.pid == before.pid);

  // What was said before the process knew counts for nothing; what becomes of it counts.
  CHECK(host.Feed(agent_event::Finished{Worker(2), Pair().id, after.held}).empty());
  CHECK(host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)}) == "report");
  CHECK(host.Reported(3).life == WorkerLife::kDead);
  CHECK_FALSE(host.Reported(2).exit);
}

TEST_CASE("A replacement is spawned once the death is known, then later and later") {
  Fixture host(1);
  host.Start();
  const auto die = [&](uint32_t counter) {
    return host.Feed(agent_event::Exited{Worker(counter), {true, 11}, host.Read(counter)});
  };
  // The server has applied a report of all that was said before.
  const auto heard = [&] {
    host.report = host.core.MakeReport(host.now);
    return host.Feed(agent_event::DirectiveCame{host.MakeDirective()});
  };
  CHECK(die(1) == "report");
  CHECK(heard() == "spawn 7.2");
  host.MakeReady(2);
  CHECK(die(2) == "report");
  CHECK(heard().empty());
  host.now += seconds(1) - kMillisecond;
  CHECK(host.Feed(agent_event::TimePassed{}) == "report");
  host.now += kMillisecond;
  CHECK(host.Feed(agent_event::TimePassed{}) == "spawn 7.3");
  host.MakeReady(3);
  CHECK(die(3) == "report");
  CHECK(heard().empty());
  host.now += seconds(2);
  CHECK(host.Feed(agent_event::TimePassed{}) == "spawn 7.4; report");
  SECTION("a commit makes it quick again") {
    host.MakeReady(4);
    host.Install(MakeRoster(1, 0, GenerationKind::kInstalled, {Worker(4)}));
    host.Word(4).commits = 1;
    host.Look(4);
    CHECK(die(4) == "report");
    CHECK(heard() == "spawn 7.5");
  }
  SECTION("orders from before the death bring nobody") {
    host.MakeReady(4);
    Directive old = host.MakeDirective();
    CHECK(die(4) == "report");
    host.now += seconds(10);
    CHECK(host.Feed(agent_event::DirectiveCame{old}).find("spawn") == std::string::npos);
    host.wanted.clear();  // a program that ended by itself is not wanted again
    CHECK(heard().find("spawn") == std::string::npos);
    host.wanted = {0};
    CHECK(heard() == "spawn 7.5");
  }
  SECTION("a restarted server must have heard of the death itself") {
    host.MakeReady(4);
    CHECK(die(4) == "report");
    host.wanted.clear();
    heard();
    host.now += seconds(10);
    host.wanted = {0};
    Directive restarted = host.MakeDirective();
    restarted.server = ServerIncarnation{2};
    restarted.sequence = 1;
    restarted.acked_report = 0;
    CHECK(host.Feed(agent_event::DirectiveCame{restarted}).find("spawn") == std::string::npos);
    host.report = host.core.MakeReport(host.now);
    restarted.sequence = 2;
    restarted.acked_report = host.report.sequence;
    CHECK(host.Feed(agent_event::DirectiveCame{restarted}).find("spawn 7.5") != std::string::npos);
  }
  SECTION("not while survivors re-form") {
    Directive hold = host.MakeDirective();
    hold.spawn_allowed = false;
    host.Feed(agent_event::DirectiveCame{hold});
    host.MakeReady(4);
    host.now += seconds(120);
    Directive beat = host.MakeDirective();
    beat.spawn_allowed = false;
    host.Feed(agent_event::DirectiveCame{beat});
  }
}

TEST_CASE("A graceful stop asks all at once and kills after the grace period") {
  Fixture host;
  host.Start();
  Directive stop = host.MakeDirective();
  stop.stop = StopMode::kGraceful;
  CHECK(host.Feed(agent_event::DirectiveCame{stop}) ==
        "stop 7.1; stop 7.2; kill 7.1 15; kill 7.2 15; report");
  CHECK(host.Feed(agent_event::Exited{Worker(1), {false, 0}, host.Read(1)}) == "report");
  SECTION("time passes") {
    host.now += kGracePeriodDefault;
    CHECK(host.Feed(agent_event::TimePassed{}) == "kill 7.2 9; report");
  }
  SECTION("a second request") {
    Directive at_once = host.MakeDirective();
    at_once.stop = StopMode::kImmediate;
    CHECK(host.Feed(agent_event::DirectiveCame{at_once}) == "kill 7.2 9; report");
  }
  host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)});
  Directive acknowledged = host.MakeDirective();
  acknowledged.stop = StopMode::kImmediate;
  CHECK(host.Feed(agent_event::DirectiveCame{acknowledged}).ends_with("end 0"));
}

TEST_CASE("A refusal because a newer agent has registered kills at once (P2)") {
  Fixture host;
  host.Start();
  CHECK(host.Feed(agent_event::Refused{StatusCode::kAborted, "a newer agent"}) ==
        "kill 7.1 9; kill 7.2 9");
  host.Feed(agent_event::Exited{Worker(1), {true, 9}, host.Read(1)});
  CHECK(host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)}) == "report; end 1");
}

TEST_CASE("An agent that the server refuses stops its workers and ends as a failure") {
  Fixture host;
  host.Start();
  CHECK(host.Feed(agent_event::Refused{StatusCode::kFailedPrecondition, "another job"}) ==
        "stop 7.1; stop 7.2; kill 7.1 15; kill 7.2 15; report");
  CHECK(host.errors == 1);
  host.Feed(agent_event::Exited{Worker(1), {true, 15}, host.Read(1)});
  CHECK(host.Feed(agent_event::Exited{Worker(2), {true, 15}, host.Read(2)}) == "report; end 1");
}

TEST_CASE("A refusal in a stop is the server's end: nothing is wrong") {
  Fixture host;
  host.Start();
  Directive stop = host.MakeDirective();
  stop.stop = StopMode::kGraceful;
  host.Feed(agent_event::DirectiveCame{stop});
  CHECK(
      host.Feed(agent_event::Refused{StatusCode::kFailedPrecondition, "the job is over"}).empty());
  host.Feed(agent_event::Exited{Worker(1), {false, 0}, host.Read(1)});
  CHECK(host.Feed(agent_event::Exited{Worker(2), {false, 0}, host.Read(2)}) == "report; end 0");
  CHECK(host.errors == 0);
}

TEST_CASE("Without its launcher an agent stops its workers and ends (P21)") {
  Fixture host;
  host.Start();
  CHECK(host.Feed(agent_event::LauncherGone{"closed"}) ==
        "stop 7.1; stop 7.2; kill 7.1 15; kill 7.2 15; report");
  host.Feed(agent_event::Exited{Worker(1), {true, 15}, host.Read(1)});
  CHECK(host.Feed(agent_event::Exited{Worker(2), {true, 15}, host.Read(2)}) == "report; end 0");
}

TEST_CASE("A dead worker is kept until the server says that it may be forgotten") {
  Fixture host(1);
  host.Start();
  host.Feed(agent_event::Exited{Worker(1), {true, 9}, host.Read(1)});
  CHECK(host.Reported(1).life == WorkerLife::kDead);
  Directive order = host.MakeDirective();
  order.forget = {Worker(1)};
  CHECK(host.Feed(agent_event::DirectiveCame{order}) == "forget 7.1; spawn 7.2");
  CHECK(host.Reported(1).pid == 0);
}

TEST_CASE("A command that cannot be started is reported and not tried again") {
  Fixture host(1);
  host.Feed(agent_event::Registered{kAgent, ServerIncarnation{1}});
  host.Feed(agent_event::DirectiveCame{host.MakeDirective()});
  CHECK(host.Feed(agent_event::SpawnFailed{Worker(1), "no such file: trian", true}) == "report");
  CHECK(host.report.spawn_error == "no such file: trian");
  host.now += seconds(10);
  CHECK(host.Feed(agent_event::DirectiveCame{host.MakeDirective()}).empty());
}

}  // namespace
}  // namespace elastic::internal::agent_test
