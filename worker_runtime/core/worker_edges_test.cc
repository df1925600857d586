// Golden stories of edges that do not come up. Names in brackets are those of
// rendezvous/core/PROTOCOL.md.
#include <catch2/catch.hpp>

#include "worker_runtime/core/worker_core_fixture.h"

namespace elastic::internal::worker_testing {
namespace {

using namespace worker_event;

EdgesFailed Refused(const Roster& roster, WorkerIncarnation peer = kPeer) {
  return {.generation = roster.id, .peer = peer, .over_there = false, .what = "refused"};
}
EdgesFailed NoDescriptor(const Roster& roster) {
  return {.generation = roster.id,
          .peer = std::nullopt,
          .over_there = false,
          .what = "Too many open files: raise ulimit -n"};
}

TEST_CASE("Edges of a prepared successor are tried until they stand, and then contributed (P25)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Feed(RosterCame{Grown()});
  CHECK(worker.Feed(Refused(Grown(), kNew)) == "retry 2 in 500ms");
  CHECK(worker.Feed(NoDescriptor(Grown())) == "retry 2 in 1s");
  CHECK(worker.Feed(Refused(Grown(), kNew)) == "retry 2 in 2s");
  CHECK(worker.Feed(Refused(Grown(), kNew)) == "retry 2 in 4s");
  for (int i = 0; i < 20; ++i) {  // whatever the cause: nobody waits for it, so nobody is blamed
    CHECK(worker.Feed(NoDescriptor(Grown())) == "retry 2 in 8s");
  }
  CHECK(worker.Commit().starts_with("contribute 0; "));
  CHECK(worker.Feed(EdgesUp{Grown().id}).empty());
  CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 2");
  SECTION("one breaks before it was used") {
    CHECK(worker.Feed(EdgesLost{Grown().id}).empty());
    CHECK(worker.Feed(Refused(Grown(), kNew)) == "retry 2 in 500ms");
    CHECK(worker.Commit(2).find("word 2,0; retry 2 in 0") != std::string::npos);
  }
  SECTION("the peer makes one anew, and this side takes it") {
    worker.Feed(EdgesLost{Grown().id});
    worker.Feed(EdgesUp{Grown().id});
    CHECK(worker.Commit(2).ends_with("word 2,0; entered; open 2; commit true"));
  }
  SECTION("the generation is over") {
    worker.Fence();
    const Roster next = MakeRoster(3, 2, GenerationKind::kInstalled, Version(1, 1),
                                   {{.id = kSelf, .holds = true}, {.id = kPeer, .holds = true}});
    worker.Feed(RosterCame{next});
    worker.See(Word(3), next.id);
    CHECK(worker.Feed(Refused(Grown(), kNew)).empty());
  }
}

TEST_CASE("Inside a generation a peer is accused after the last try, and once (P18)") {
  Fixture worker;
  worker.Feed(RosterCame{First()});
  worker.See(Word(1), First().id);
  CHECK(worker.Feed(Refused(First())) == "retry 1 in 500ms");
  CHECK(worker.Feed(Refused(First())) == "retry 1 in 1s");
  SECTION("it fails again") {
    CHECK(worker.Feed(Refused(First())) ==
          "warn accusing worker 2.1: refused (3 tries); accuse 2.1");
    CHECK(worker.Feed(Refused(First())).empty());
  }
  SECTION("it stands") { CHECK(worker.Feed(EdgesUp{First().id}) == "entered; open 1 restored"); }
  SECTION("it stood and broke, unused, while the state was still missing: counted anew") {
    worker.Feed(EdgesUp{First().id});
    CHECK(worker.Feed(Refused(First())) == "retry 1 in 500ms");
  }
  SECTION("the generation is fenced: whoever is dead is known") {
    worker.Fence();
    CHECK(worker.Feed(Refused(First())).empty());
  }
}

TEST_CASE("A cause on this side ends the worker after the last try, with the remedy") {
  Fixture worker;
  worker.Feed(RosterCame{First()});
  worker.See(Word(1), First().id);
  CHECK(worker.Feed(NoDescriptor(First())) == "retry 1 in 500ms");
  CHECK(worker.Feed(Refused(First())) == "retry 1 in 1s");  // another cause is counted by itself
  CHECK(worker.Feed(NoDescriptor(First())) == "retry 1 in 2s");
  const std::string end = worker.Feed(NoDescriptor(First()));
  CHECK(end.starts_with("fatal "));
  CHECK(end.find("ulimit -n (3 tries)") != std::string::npos);
}

TEST_CASE("A peer that says the generation is over is asked again and not accused") {
  Fixture worker;
  worker.Feed(RosterCame{First()});
  worker.See(Word(1), First().id);
  for (int i = 0; i < 20; ++i) {
    CHECK(worker.Feed(EdgesFailed{First().id, std::nullopt, true, "over there"})
              .starts_with("retry 1 in "));
  }
}

TEST_CASE("Edges that failed for a newcomer are tried at once when others wait for it") {
  Fixture worker(kNew);
  worker.See(Word(0), {});
  worker.Feed(RosterCame{Grown()});
  for (int i = 0; i < 5; ++i) {
    worker.Feed(NoDescriptor(Grown()));
  }
  CHECK(worker.Feed(StateOffered{Grown().id, Version(1, 3)}) == "word 2,0; accept; retry 2 in 0s");
  // From now on tries are counted.
  CHECK(worker.Feed(NoDescriptor(Grown())) == "retry 2 in 500ms");
  CHECK(worker.Feed(NoDescriptor(Grown())) == "retry 2 in 1s");
  CHECK(worker.Feed(NoDescriptor(Grown())).starts_with("fatal "));
}

}  // namespace
}  // namespace elastic::internal::worker_testing
