// Golden stories of the agent: fences, rosters, deaths. Names in brackets are those of
// rendezvous/core/PROTOCOL.md.
#include <catch2/catch.hpp>

#include "launcher/core/agent_fixture.h"

namespace elastic::internal::agent_test {
namespace {

constexpr auto kInstalled = GenerationKind::kInstalled;
constexpr auto kPrepared = GenerationKind::kPrepared;

Roster First() { return MakeRoster(1, 0, kInstalled, {Worker(1), Worker(2), Elsewhere(1)}); }

TEST_CASE("A slot without a process gets one, and a ready worker is reported as waiting") {
  Fixture host;
  CHECK(host.Feed(agent_event::Registered{kAgent}) == "report");
  CHECK(host.Feed(agent_event::DirectiveCame{host.MakeDirective()}) == "spawn 7.1; spawn 7.2");
  CHECK(host.Feed(agent_event::Spawned{Worker(1), 101}) == "report");
  CHECK(host.Reported(1).life == WorkerLife::kStarting);
  CHECK(host.Feed(agent_event::Ready{Worker(1), {"127.0.0.1", 5}}) == "report");
  CHECK(host.Reported(1).life == WorkerLife::kWaiting);
  CHECK(host.Reported(2).pid == 0);
}

TEST_CASE("A first generation moves words from outside, then its roster is delivered (P5)") {
  Fixture host;
  host.Start();
  CHECK(host.Install(First()) ==
        "reset 7.1 to 1,0; reset 7.2 to 1,0; report; roster 1 to 7.1; roster 1 to 7.2");
  CHECK(host.report.installed == First().id);
  CHECK(host.Reported(1).life == WorkerLife::kMember);
  CHECK(host.Install(First()).empty());
}

TEST_CASE("A death fences the survivors before anything else, and is true when told (P12, P13)") {
  Fixture host;
  host.Start();
  host.Install(First());
  CHECK(host.Feed(agent_event::OwnerDied{Worker(2), host.Read(2)}) ==
        "fence 7.1; fence 7.2; report");
  CHECK(host.Reported(1).word.fenced);
  CHECK(host.Reported(2).life == WorkerLife::kDead);
  CHECK(host.report.marks == std::vector<Mark>{{GenerationNumber{1}, Worker(2)}});
  CHECK(host.report.closed.value == 0);  // only the server closes numbers
}

TEST_CASE("A worker that dies while committing is dead only when its word is final (P5)") {
  Fixture host;
  host.Start();
  host.Install(First());
  host.Word(2).committing = true;
  host.Feed(agent_event::OwnerDied{Worker(2), host.Read(2)});
  CHECK(host.Reported(2).life == WorkerLife::kMember);
  host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)});
  CHECK(host.Reported(2).life == WorkerLife::kDead);
  CHECK(host.Reported(2).exit == ExitStatus{true, 9});
  CHECK(host.Reported(2).cause == DeathCause::kOwnerDied);
}

TEST_CASE("A fence is answered only when nobody commits any more (P5)") {
  Fixture host;
  host.Start();
  host.Install(First());
  host.Word(1).committing = true;
  Directive mark = host.MakeDirective();
  mark.installed = First();
  mark.closed = GenerationNumber{1};
  mark.marks = {{GenerationNumber{1}, Elsewhere(1)}};
  CHECK(host.Feed(agent_event::DirectiveCame{mark}) == "fence 7.1; fence 7.2; report");
  CHECK(host.report.closed.value == 0);
  SECTION("the commit is finished") {
    host.Word(1) = {GenerationNumber{1}, 1, false, true};
    CHECK(host.Look(1) == "report");
    CHECK(host.report.closed.value == 1);
    CHECK(host.Reported(1).word.commits == 1);
  }
  SECTION("or its worker is dead") {
    host.Feed(agent_event::Exited{Worker(1), {true, 9}, host.Read(1)});
    CHECK(host.report.closed.value == 1);
  }
}

TEST_CASE("A successor waits for a committing member, then moves fenced words only (P24)") {
  Fixture host;
  host.Start();
  host.Install(First());
  host.Word(1).committing = true;
  const Roster second = MakeRoster(2, 1, kInstalled, {Worker(1), Worker(2)});
  CHECK(host.Install(second, 1) == "fence 7.1; fence 7.2; report");
  CHECK(host.report.installed == First().id);
  host.Word(1) = {GenerationNumber{1}, 1, false, true};
  CHECK(host.Look(1) ==
        "reset 7.1 to 2,0; reset 7.2 to 2,0; report; roster 2 to 7.1; roster 2 to 7.2");
  CHECK(host.report.installed == second.id);
}

TEST_CASE("A late mark or a late watcher cannot break a later generation (P12, V9)") {
  Fixture host;
  host.Start();
  host.Install(First());
  const Roster second = MakeRoster(2, 1, kInstalled, {Worker(1), Elsewhere(1)});
  host.Install(second, 1);
  SECTION("a mark of the generation before comes again") {
    Directive late = host.MakeDirective();
    late.installed = second;
    late.closed = GenerationNumber{1};
    late.marks = {{GenerationNumber{1}, Elsewhere(2)}};
    host.Feed(agent_event::DirectiveCame{late});
  }
  SECTION("a worker that was left out dies now") {
    host.Feed(agent_event::OwnerDied{Worker(2), host.Read(2)});
  }
  CHECK(host.Word(1) == CommitWord{GenerationNumber{2}, 0, false, false});
}

TEST_CASE("A generation that is closed already is entered with a fenced word (P12)") {
  Fixture host;
  host.Start();
  host.Install(First());
  const Roster second = MakeRoster(2, 1, kInstalled, {Worker(1), Elsewhere(1)});
  CHECK(host.Install(second, 2) == "fence 7.1; fence 7.2; report; reset 7.1 to 2,0,fenced; report");
  CHECK(host.report.closed.value == 2);
}

TEST_CASE("A worker outside carries the closed number before the fence is answered (P12)") {
  Fixture host;
  host.Start();
  Directive directive = host.MakeDirective();
  directive.closed = GenerationNumber{4};
  CHECK(host.Feed(agent_event::DirectiveCame{directive}) ==
        "reset 7.1 to 0,4; reset 7.2 to 0,4; report");
  CHECK(host.report.closed.value == 4);
  CHECK(host.Reported(1).word == CommitWord{});
}

TEST_CASE("A newcomer that enters a prepared generation while it is closed is fenced (P12)") {
  Fixture host;
  host.Start();
  host.Install(MakeRoster(1, 0, kInstalled, {Elsewhere(1), Elsewhere(2)}));
  const Roster next = MakeRoster(2, 1, kPrepared, {Elsewhere(1), Elsewhere(2), Worker(1)});
  Directive prepare = host.MakeDirective();
  prepare.installed = MakeRoster(1, 0, kInstalled, {Elsewhere(1), Elsewhere(2)});
  prepare.prepared = next;
  CHECK(host.Feed(agent_event::DirectiveCame{prepare}) == "roster 2 to 7.1; report");
  // It has just been told by a holder, and the agent has not looked since.
  host.pages[Worker(1)].word = {GenerationNumber{2}, 0, false, false};
  host.pages[Worker(1)].generation = next.id;
  Directive close = host.MakeDirective();
  close.installed = prepare.installed;
  close.closed = GenerationNumber{2};
  CHECK(host.Feed(agent_event::DirectiveCame{close}) ==
        "reset 7.1 to 0,2; reset 7.2 to 0,2; fence 7.1; report");
  CHECK(host.Word(1).fenced);
  CHECK(host.report.closed.value == 2);
}

TEST_CASE("A prepared roster moves nobody, not even when it is installed (P24, P25)") {
  Fixture host;
  host.Start();
  host.Install(First());
  const Roster next =
      MakeRoster(2, 1, kPrepared, {Worker(1), Worker(2), Elsewhere(1), Elsewhere(2)});
  Directive prepare = host.MakeDirective();
  prepare.installed = First();
  prepare.prepared = next;
  CHECK(host.Feed(agent_event::DirectiveCame{prepare}) ==
        "roster 2 to 7.1; roster 2 to 7.2; report");
  CHECK(host.report.prepared == next.id);
  CHECK(host.Install(next) == "report");
  CHECK(host.report.installed == next.id);
  CHECK(host.Word(1) == CommitWord{GenerationNumber{1}, 0, false, false});

  SECTION("a loss before all have entered fences both numbers (P26)") {
    host.pages[Worker(2)].word = {GenerationNumber{2}, 0, false, false};
    host.pages[Worker(2)].generation = next.id;
    Directive close = host.MakeDirective();
    close.installed = next;
    close.closed = GenerationNumber{2};
    CHECK(host.Feed(agent_event::DirectiveCame{close}) ==
          "fence 7.1; fence 7.2; report; fence 7.2; report");
    CHECK(host.Reported(1).word == CommitWord{GenerationNumber{1}, 0, false, true});
    CHECK(host.Reported(2).word == CommitWord{GenerationNumber{2}, 0, false, true});
    CHECK(host.report.closed.value == 2);
  }
}

TEST_CASE("A boundary that was passed unseen shows in the word and installs the successor (P25)") {
  Fixture host;
  host.Start();
  host.Install(First());
  const Roster next = MakeRoster(2, 1, kPrepared, {Worker(1), Worker(2), Elsewhere(1)});
  Directive prepare = host.MakeDirective();
  prepare.installed = First();
  prepare.prepared = next;
  host.Feed(agent_event::DirectiveCame{prepare});
  host.pages[Worker(1)].word = {GenerationNumber{2}, 0, false, false};
  host.pages[Worker(1)].generation = next.id;
  CHECK(host.Look(1) == "report");
  CHECK(host.report.installed == next.id);
  // An installed roster that is older comes late and changes nothing.
  CHECK(host.Install(First()).empty());
}

TEST_CASE("A fenced word stays in every report until a successor comes (V12)") {
  Fixture host;
  host.Start();
  host.Install(First());
  host.Feed(agent_event::Exited{Worker(2), {true, 9}, host.Read(2)});
  host.Feed(agent_event::StreamLost{});
  CHECK(host.Feed(agent_event::Registered{kAgent, ServerIncarnation{1}}) == "report");
  CHECK(host.Reported(1).word == CommitWord{GenerationNumber{1}, 0, false, true});
  CHECK(host.Reported(2).life == WorkerLife::kDead);
}

TEST_CASE("Entered and finished count only for the generation in the word (P29)") {
  Fixture host;
  host.Start();
  host.Install(First());
  const Held state{{GenerationNumber{1}, 3}, 5, 2};
  host.Feed(agent_event::Entered{Worker(1), First().id});
  host.Feed(agent_event::Finished{Worker(1), First().id, state});
  CHECK(host.Reported(1).entered);
  CHECK(host.Reported(1).finished == state);
  host.Install(MakeRoster(2, 1, kInstalled, {Worker(1), Worker(2)}), 1);
  CHECK_FALSE(host.Reported(1).entered);
  CHECK_FALSE(host.Reported(1).finished.has_value());
}

TEST_CASE("After the record members are told, newcomers leave, and exits are in order (P29)") {
  Fixture host(3);
  host.Start();
  host.Install(First());
  Directive record = host.MakeDirective();
  record.installed = First();
  record.finished = FinishRecord{First().id, {{GenerationNumber{1}, 3}, 5, 2}};
  CHECK(host.Feed(agent_event::DirectiveCame{record}) ==
        "finish to 7.1; finish to 7.2; leave to 7.3");
  host.Feed(agent_event::Exited{Worker(1), {false, 0}, host.Read(1)});
  CHECK(host.Reported(1).released);
  CHECK_FALSE(host.Word(2).fenced);  // nobody is fenced by a member that leaves
  host.Feed(agent_event::Exited{Worker(2), {false, 3}, host.Read(2)});
  CHECK_FALSE(host.Reported(2).released);
}

}  // namespace
}  // namespace elastic::internal::agent_test
