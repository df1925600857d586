// Golden stories of what ranks agree on at a commit: growth, stop, equal steps (P6, P25, V7).
#include <catch2/catch.hpp>

#include "worker_runtime/core/worker_core_fixture.h"

namespace elastic::internal::worker_testing {
namespace {

using namespace worker_event;

TEST_CASE("A boundary is one only if all contributed the same successor (P25, V7)") {
  Fixture worker;
  worker.EnterFirst();
  CHECK(worker.Feed(RosterCame{Grown()}) == "connect 2");
  // Its edges do not stand yet: this rank does not contribute it.
  CHECK(worker.Commit() == "contribute 0; ; word 1,0C; copy; word 1,1; commit true");
  CHECK(worker.Feed(EdgesUp{Grown().id}).empty());
  CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 2");
  SECTION("others had not been told") {
    worker.Agree(Merge(worker.Alike(0), worker.Alike(2)));
    worker.Feed(CommitWanted{First().id});
    CHECK(worker.Copied() == "word 1,2; commit true");
    CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 2");
  }
  SECTION("all had") {
    CHECK(worker.Agree(worker.Alike(2)).empty());
    CHECK(worker.Feed(CommitWanted{First().id}) == "word 1,1C; copy");
    CHECK(worker.Copied() == "word 1,2; word 2,0; entered; open 2; commit true");
    // The old connections go when all are known to have crossed.
    CHECK(worker.Feed(CommitWanted{Grown().id}) == "agree 0");
    CHECK(worker.Agree(worker.Alike()) == "disconnect 1; word 2,0C; copy");
  }
  SECTION("the fence is first: the commit stands, the successor is not entered") {
    worker.Agree(worker.Alike(2));
    worker.Feed(CommitWanted{First().id});
    worker.Fence();
    CHECK(worker.Copied() == "word 1,2F; settled; commit true");
  }
  SECTION("a peer that has crossed and left the old edges is no loss") {
    worker.Agree(worker.Alike(2));
    worker.Feed(CommitWanted{First().id});
    CHECK(worker.Feed(PeerBroken{First().id, kPeer}).empty());
  }
}

TEST_CASE("A commit goes by the first world collective after the one before it (P25)") {
  Fixture worker;
  worker.EnterFirst();
  CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 0");
  CHECK(worker.Agree(worker.Alike()).empty());
  // Told of a successor in the middle of the interval, it contributes that one in the next.
  worker.Feed(RosterCame{Grown()});
  worker.Feed(EdgesUp{Grown().id});
  CHECK(worker.Feed(CollectiveWanted{First().id}).empty());
  CHECK(worker.Agree(worker.Alike(2)).empty());
  CHECK(worker.Feed(CommitWanted{First().id}) == "word 1,0C; copy");
  CHECK(worker.Copied() == "word 1,1; commit true");
  SECTION("of the program") { CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 2"); }
  SECTION("of the commit, if the program makes none") {
    CHECK(worker.Feed(CommitWanted{First().id}) == "agree 2");
  }
}

TEST_CASE("Ranks that commit unequally are named with their steps (P6, V7)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Commit();
  worker.Commit();
  const auto other = [](uint32_t commits, uint64_t step) {
    return Agreement::Of(0, 0, {.commits = commits, .rank = 1, .step = step});
  };
  worker.Feed(CollectiveWanted{First().id});
  SECTION("fewer commits") {
    CHECK(worker.Agree(Merge(worker.Alike(), other(1, 1))) ==
          "fatal rank 0 has committed step 2 (its 2nd commit in this generation), rank 1 step 1 "
          "(its 1st): all ranks must call elastic_commit equally often with the same step");
  }
  SECTION("none") {
    CHECK(worker.Agree(Merge(worker.Alike(), other(0, 0))) ==
          "fatal rank 0 has committed step 2 (its 2nd commit in this generation), rank 1 none "
          "since step 0: all ranks must call elastic_commit equally often with the same step");
  }
  SECTION("another step") {
    CHECK(worker.Agree(Merge(worker.Alike(), other(2, 7))) ==
          "fatal rank 1 has committed step 7 (its 2nd commit in this generation), rank 0 step 2 "
          "(its 2nd): all ranks must call elastic_commit equally often with the same step");
  }
  SECTION("seen only after the first collective of the interval") {
    CHECK(worker.Agree(worker.Alike()).empty());
    CHECK(worker.Agree(Merge(worker.Alike(), other(3, 3))).starts_with("fatal rank 1 has "));
  }
  CHECK(worker.Feed(CommitWanted{First().id}).empty());  // nothing is committed after it
}

TEST_CASE("A wish to stop comes to all ranks with the same commit, and nobody is taken in (P25)") {
  Fixture worker;
  worker.EnterFirst();
  worker.Feed(RosterCame{Grown()});
  worker.Feed(EdgesUp{Grown().id});
  SECTION("its own, told in the middle of a step, goes with the next one") {
    CHECK(worker.Feed(CollectiveWanted{First().id}) == "contribute 2");
    CHECK(worker.Feed(StopWanted{kStopByProgram}).empty());
    worker.Agree(worker.Alike(0));
    worker.Feed(CommitWanted{First().id});
    CHECK(worker.Copied() == "word 1,1; commit true");
    CHECK(worker.Feed(CommitWanted{First().id}) == "agree 2, stop 1");
  }
  SECTION("another rank's") {
    worker.Feed(CollectiveWanted{First().id});
    worker.Agree(worker.Alike(2, kStopByOperator));
    worker.Feed(CommitWanted{First().id});
    CHECK(worker.Copied() == "word 1,1; commit true, stop 2");
    // It is said again after a loss, to those that have not heard.
    CHECK(worker.Feed(CommitWanted{First().id}) == "agree 2, stop 2");
  }
}

TEST_CASE("An operator's stop ends what waits for a generation, and nothing else") {
  Fixture worker;
  SECTION("outside") { CHECK(worker.Feed(StopWanted{kStopByOperator}) == "left"); }
  SECTION("a program's does not") { CHECK(worker.Feed(StopWanted{kStopByProgram}).empty()); }
  SECTION("in training it goes on until it is fenced") {
    worker.EnterFirst();
    CHECK(worker.Feed(StopWanted{kStopByOperator}).empty());
    CHECK(worker.Fence() == "close; left");
  }
  SECTION("a commit under way is finished first") {
    worker.EnterFirst();
    worker.Feed(CollectiveWanted{First().id});
    worker.Agree(worker.Alike());
    worker.Feed(CommitWanted{First().id});
    worker.Feed(StopWanted{kStopByOperator});
    CHECK(worker.Fence() == "close");
    CHECK(worker.Copied() == "word 1,1F; settled; commit true; left");
  }
}

}  // namespace
}  // namespace elastic::internal::worker_testing
