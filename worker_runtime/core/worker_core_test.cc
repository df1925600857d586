// Golden stories of the worker's side. Names in brackets are those of rendezvous/core/PROTOCOL.md.
#include <catch2/catch.hpp>

#include "worker_runtime/core/worker_core_fixture.h"

namespace elastic::internal::worker_testing {
namespace {

using namespace worker_event;

TEST_CASE("Roster, word and edges may come in any order, the function is called after all") {
  Fixture worker;
  SECTION("roster first") {
    CHECK(worker.Feed(RosterCame{First()}).empty());
    CHECK(worker.See(Word(1), First().id) == "disconnect 0; connect 1");
  }
  SECTION("word first") {
    CHECK(worker.See(Word(1), First().id).empty());
    CHECK(worker.Feed(RosterCame{First()}) == "disconnect 0; connect 1");
  }
  CHECK(worker.Feed(EdgesUp{First().id}) == "entered; open 1 restored");
  CHECK(worker.Feed(RosterCame{First()}).empty());
}

TEST_CASE("A word of another identity with the same number is not entered (P2)") {
  Fixture worker;
  worker.Feed(RosterCame{First()});
  GenerationId other = First().id;
  other.server = ServerIncarnation{2};
  CHECK(worker.See(Word(1), other).empty());
}

TEST_CASE("A commit awaits the agreement, marks, copies and counts (P5, P6)") {
  Fixture worker;
  worker.EnterFirst();
  CHECK(worker.Feed(CommitWanted{First().id}) == "agree 0");
  CHECK(worker.Agree(worker.Alike()) == "word 1,0C; copy");
  CHECK(worker.Feed(CopyDone{Version(1, 1)}) == "word 1,1; commit true");
}

TEST_CASE("Version 0 awaits all ranks: having rank 0's first state proves nothing (P7, V8)") {
  Fixture worker;
  worker.Feed(RosterCame{First()});
  worker.See(Word(1), First().id);
  // The sync is no event at all, so the commit makes a world collective of its own.
  CHECK(worker.Feed(EdgesUp{First().id}) == "entered; open 1 restored");
  CHECK(worker.Feed(CommitWanted{First().id}) == "agree 0");
  CHECK(worker.word == Word(1));
  CHECK(worker.Fence() == "close; commit false");
  CHECK(worker.word == Word(1, 0, false, true));
}

TEST_CASE("A call that has not noticed that its generation is over commits nothing") {
  Fixture worker;
  worker.EnterFirst();
  worker.Commit();
  worker.Fence();
  const Roster next =
      MakeRoster(2, 1, GenerationKind::kInstalled, Version(1, 1), {{.id = kSelf, .holds = true}});
  worker.Feed(RosterCame{next});
  worker.See(Word(2), next.id);
  CHECK(worker.Feed(EdgesUp{next.id}) == "entered; open 2 restored");
  CHECK(worker.Feed(CommitWanted{First().id}) == "commit false");
  CHECK(worker.Feed(FunctionReturned{Version(1, 1), First().id}).empty());
  CHECK(worker.Feed(CommitWanted{next.id}) == "agree 0");
}

TEST_CASE("A fence before the mark ends the commit, after it the commit is finished (P5)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Feed(CommitWanted{First().id});
  SECTION("while it awaits the agreement") {
    CHECK(worker.Fence() == "close; commit false");
    CHECK(worker.Agree(worker.Alike()).empty());
  }
  SECTION("just before the exchange that marks") {
    worker.before_exchange = Word(1, 0, false, true);
    CHECK(worker.Agree(worker.Alike()) == "word 1,0F; commit false; close");
  }
  SECTION("while it copies") {
    worker.Agree(worker.Alike());
    CHECK(worker.Fence() == "close");
    CHECK(worker.Feed(CopyDone{Version(1, 1)}) == "word 1,1F; settled; commit true");
  }
  SECTION("just before the exchange that counts") {
    worker.Agree(worker.Alike());
    worker.before_exchange = Word(1, 0, true, true);
    CHECK(worker.Feed(CopyDone{Version(1, 1)}) ==
          "word 1,0CF; word 1,1F; settled; commit true; close");
  }
  CHECK(worker.Feed(CommitWanted{First().id}) == "commit false");
}

TEST_CASE("A loss before the successor is entered ends the commit well (P26)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Feed(RosterCame{Grown()});
  worker.Feed(EdgesUp{Grown().id});
  worker.Commit();
  worker.Feed(CommitWanted{First().id});
  worker.Feed(PeerBroken{Grown().id, kNew});
  worker.Agree(worker.Alike(2));
  CHECK(worker.Copied() == "word 1,2; word 2,0");
  CHECK(worker.Fence() == "close; commit true");
  const Roster third = MakeRoster(3, 2, GenerationKind::kInstalled, Version(1, 2),
                                  {{.id = kSelf, .holds = true}, {.id = kPeer, .holds = true}});
  worker.Feed(RosterCame{third});
  CHECK(worker.See(Word(3), third.id) == "disconnect 2; connect 3");
  CHECK(worker.Feed(EdgesUp{third.id}) == "entered; open 3 restored");
}

TEST_CASE("A newcomer enters a prepared generation only when a holder tells it (P25)") {
  Fixture worker(kNew);
  worker.See(Word(0), {});
  CHECK(worker.Feed(RosterCame{Grown()}) == "fetch 2 from 1.1; connect 2");
  CHECK(worker.Feed(EdgesUp{Grown().id}).empty());
  SECTION("told") {
    CHECK(worker.Feed(StateOffered{Grown().id, Version(1, 3)}) == "word 2,0; accept");
    CHECK(worker.Feed(StateCame{Grown().id, Version(1, 3)}) == "word 2,0C; take");
    CHECK(worker.Feed(StateTaken{Version(1, 3)}) == "word 2,0; entered; open 2 restored");
  }
  SECTION("the number was closed meanwhile") {
    CHECK(worker.See(Word(0, 2), {}) == "disconnect 2");
    CHECK(worker.Feed(StateOffered{Grown().id, Version(1, 3)}).empty());
  }
  SECTION("it is closed at this very moment") {
    worker.before_exchange = Word(0, 2);
    CHECK(worker.Feed(StateOffered{Grown().id, Version(1, 3)}) == "word 0,2; disconnect 2");
  }
  SECTION("an older one is closed at this very moment: the offer comes only once") {
    worker.before_exchange = Word(0, 1);
    CHECK(worker.Feed(StateOffered{Grown().id, Version(1, 3)}) == "word 0,1; word 2,0; accept");
  }
  SECTION("the holder is lost") {
    CHECK(worker.Feed(FetchFailed{Grown().id, kSelf}) == "fetch 2 from 2.1");
  }
  SECTION("another successor takes its place, but the first one was entered") {
    CHECK(worker.Feed(RosterCame{Grown(3)}) == "fetch 3 from 1.1; connect 3");
    CHECK(worker.Feed(RosterCame{Grown(2)}) == "fetch 2 from 1.1");
  }
  SECTION("the server forms one itself: the agent's reset decides") {
    const Roster installed =
        MakeRoster(3, 1, GenerationKind::kInstalled, Version(1, 3),
                   {{.id = kPeer, .holds = true}, {.id = kNew, .member_before = false}});
    worker.Feed(RosterCame{installed});
    CHECK(worker.See(Word(3), installed.id) == "disconnect 2; fetch 3 from 2.1; connect 3");
  }
}

TEST_CASE("A member behind takes the state from one holder after the other, copies too (P14)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Commit();
  worker.Fence();
  Roster next = MakeRoster(2, 1, GenerationKind::kInstalled, Version(1, 2),
                           {{kSelf}, {.id = kPeer, .holds = true}});
  RosterEntry copy;
  copy.role = Role::kCopy;
  copy.incarnation = kDead;
  copy.holds_resume = true;
  next.entries.push_back(copy);
  next.id.roster_digest = RosterDigest(next);
  worker.Feed(RosterCame{next});
  CHECK(worker.See(Word(2), next.id) == "disconnect 1; fetch 2 from 2.1; connect 2");
  CHECK(worker.Feed(FetchFailed{next.id, kPeer}) == "fetch 2 from 2.9");
  CHECK(worker.Feed(StateOffered{next.id, Version(1, 2)}) == "accept");
  CHECK(worker.Feed(EdgesUp{next.id}).empty());
  SECTION("taken") {
    CHECK(worker.Feed(StateCame{next.id, Version(1, 2)}) == "word 2,0C; take");
    CHECK(worker.Feed(StateTaken{Version(1, 2)}) == "word 2,0; entered; open 2 restored");
  }
  SECTION("stopped in the middle: the same holder is asked again") {
    CHECK(worker.Feed(TransferStopped{next.id}) == "fetch 2 from 2.9");
    CHECK(worker.Feed(TransferStopped{next.id}).empty());
    CHECK(worker.Feed(StateOffered{next.id, Version(1, 2)}) == "accept");
  }
  SECTION("a second loss in the middle") {
    SECTION("the state is being taken: the fence is answered with it") {
      worker.Feed(StateCame{next.id, Version(1, 2)});
      CHECK(worker.Fence().empty());
      CHECK(worker.Feed(StateTaken{Version(1, 2)}) == "word 2,0F; settled");
      const Roster third = MakeRoster(3, 2, GenerationKind::kInstalled, Version(1, 2),
                                      {{.id = kSelf, .holds = true}});
      worker.Feed(RosterCame{third});
      worker.See(Word(3), third.id);
      CHECK(worker.Feed(EdgesUp{third.id}) == "entered; open 3 restored");
    }
    SECTION("the fence came first: what comes after it is not held") {
      CHECK(worker.Fence().empty());
      CHECK(worker.Feed(StateCame{next.id, Version(1, 2)}).empty());
    }
    SECTION("at this very moment") {
      worker.before_exchange = CommitWord{GenerationNumber{2}, 0, false, true};
      CHECK(worker.Feed(StateCame{next.id, Version(1, 2)}) == "word 2,0F");
    }
    SECTION("fenced, it waits for the next generation, whatever becomes of the holders") {
      worker.Fence();
      for (int i = 0; i < 10; ++i) {
        CHECK(worker.Feed(FetchFailed{next.id, kPeer}).empty());
      }
    }
  }
  SECTION("no holder answers, again and again") {
    std::string last;
    for (int i = 0; i < 6 && !last.starts_with("fatal"); ++i) {
      last = worker.Feed(FetchFailed{next.id, kPeer});
    }
    CHECK(last.starts_with("fatal none of 2 holders"));
  }
}

TEST_CASE("An offer that is not what the roster names counts as a failure of its holder (P3)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Fence();
  const Roster next =
      MakeRoster(2, 1, GenerationKind::kInstalled, Version(1, 1),
                 {{kSelf}, {.id = kPeer, .holds = true}, {.id = kDead, .holds = true}});
  worker.Feed(RosterCame{next});
  CHECK(worker.See(Word(2), next.id) == "disconnect 1; fetch 2 from 2.1; connect 2");
  Held other = Version(1, 1);
  SECTION("digest") { other.digest = 7; }
  SECTION("version") { other.version.commits = 2; }
  const std::string told = worker.Feed(StateOffered{next.id, other});
  CHECK(told.starts_with("warn state (1, "));
  CHECK(told.find("of worker 2.1 is not the one") != std::string::npos);
  CHECK(told.ends_with("; fetch 2 from 2.9"));
  CHECK(worker.Feed(StateOffered{next.id, Version(1, 1)}) == "accept");
}

TEST_CASE("Equal versions with other bytes are an error of the program (P3)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Commit();
  worker.Fence();
  Held other = Version(1, 1);
  other.digest = 7;
  const Roster next =
      MakeRoster(2, 1, GenerationKind::kInstalled, other, {{kSelf}, {.id = kPeer, .holds = true}});
  worker.Feed(RosterCame{next});
  const std::string told = worker.See(Word(2), next.id);
  CHECK(told.find("fatal state of version (1, 1) differs") != std::string::npos);
  CHECK(told.find("; connect") == std::string::npos);  // nothing goes on after it
}

TEST_CASE("A broken connection is told once, and only in a generation that is whole (P18)") {
  Fixture worker;
  worker.EnterFirst();
  SECTION("whole") {
    CHECK(worker.Feed(PeerBroken{First().id, kPeer}) == "accuse 2.1");
    CHECK(worker.Feed(PeerBroken{First().id, kPeer}).empty());
  }
  SECTION("fenced") {
    worker.Fence();
    CHECK(worker.Feed(PeerBroken{First().id, kPeer}).empty());
  }
}

TEST_CASE("A loss before the record calls the function again, after it run returns (P29)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Commit();
  CHECK(worker.Feed(FunctionReturned{Version(1, 1), First().id}) == "finished");
  CHECK(worker.core.phase() == Phase::kFinished);
  CHECK(worker.Feed(PeerBroken{First().id, kPeer}).empty());  // it exits, having been told first
  CHECK(worker.Fence() == "close");
  SECTION("the record was made: all had reported") {
    CHECK(worker.Feed(FinishRecorded{{First().id, Version(1, 1)}}) == "returns");
  }
  SECTION("a successor comes") {
    const Roster next =
        MakeRoster(2, 1, GenerationKind::kInstalled, Version(1, 1), {{.id = kSelf, .holds = true}});
    worker.Feed(RosterCame{next});
    worker.See(Word(2), next.id);
    CHECK(worker.Feed(EdgesUp{next.id}) == "entered; open 2 restored");
    CHECK(worker.Feed(FunctionReturned{Version(1, 1), next.id}) == "finished");
    CHECK(worker.Feed(FinishRecorded{{next.id, Version(1, 1)}}) == "returns");
  }
}

TEST_CASE("A newcomer that is not needed leaves, a drained member waits to be told (P25, P29)") {
  SECTION("newcomer") {
    Fixture worker(kNew);
    worker.See(Word(0), {});
    CHECK(worker.Feed(LeaveTold{}) == "left");
  }
  SECTION("drained") {
    Fixture worker;
    worker.EnterFirst();
    const Roster without = MakeRoster(2, 1, GenerationKind::kPrepared, {}, {{kPeer}});
    CHECK(worker.Feed(RosterCame{without}).empty());
    CHECK(worker.Commit(2) == "contribute 2; ; word 1,0C; copy; word 1,1");
    CHECK(worker.Feed(LeaveTold{}) == "close; commit true; left");
  }
}

}  // namespace
}  // namespace elastic::internal::worker_testing
