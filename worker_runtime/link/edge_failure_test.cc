#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>

#include "collectives/testing/no_descriptor_left.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/testing/played_worker.h"

// Whole workers whose connections fail for other reasons than a death.

namespace elastic::internal::testing {
namespace {

// Counts the warnings that have `text` in them.
class Warnings {
 public:
  explicit Warnings(std::string text) : text_(std::move(text)) {
    SetLogSink(
        [this](Severity, std::string_view line) {
          const std::lock_guard lock(mutex_);
          count_ += line.find(text_) != std::string_view::npos ? 1 : 0;
        },
        Severity::kWarning);
  }
  ~Warnings() { SetLogSink(nullptr, Severity::kError); }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  const std::string text_;
  std::mutex mutex_;
  int count_ = 0;
};

struct Workers {
  void Install(PlayedWorker& worker, const Roster& roster) {
    worker.agent().Reset(roster.id);
    worker.agent().SendRoster(roster);
  }
  TestFolder folder;
  PlayedWorker first{folder, 1};
  PlayedWorker second{folder, 2};
  std::future<Status> first_joined = first.JoinUntilReady();
  std::future<Status> second_joined = second.JoinUntilReady();
};

TEST_CASE("A worker that runs out of descriptors for a prepared generation makes its edges later") {
  if (!NoDescriptorLeft::Possible()) {
    return;
  }
  Warnings warnings("it is tried again");
  Workers workers;
  const Roster alone = MakeRoster({.number = 1}, {workers.first.entry()});
  workers.Install(workers.first, alone);
  REQUIRE(Result(workers.first_joined).ok());
  RosterEntry member = workers.first.entry();
  member.previous_rank = 0;
  const Roster prepared = MakeRoster({.number = 2, .parent = 1, .kind = GenerationKind::kPrepared},
                                     {member, workers.second.entry()});
  {
    const NoDescriptorLeft none;
    workers.first.agent().SendRoster(prepared);
    while (warnings.count() == 0) {  // and it goes on training
      auto commit = workers.first.Commit(1);
      REQUIRE(Result(commit).ok());
    }
    // The next try fails as well, without another word.
    const Instant tried = Now() + kEdgeRetryDelayFirst + kEdgeRetryDelayFirst / 2;
    while (Now() < tried) {
      auto commit = workers.first.Commit(2);
      REQUIRE(Result(commit).ok());
    }
    REQUIRE(workers.first.session().membership()->generation.value == 1);
  }
  workers.second.agent().SendRoster(prepared);
  while (workers.first.session().membership()->generation.value == 1) {
    auto commit = workers.first.Commit(3);
    REQUIRE(Result(commit).ok());
  }
  REQUIRE(Result(workers.second_joined).ok());
  REQUIRE(workers.second.session().membership()->place.rank == 1);
  REQUIRE(warnings.count() == 1);
  int64_t values[2] = {1, 2};
  auto a = workers.first.Sum(&values[0]);
  auto b = workers.second.Sum(&values[1]);
  REQUIRE(Result(a).ok());
  REQUIRE(Result(b).ok());
  REQUIRE(values[1] == 3);
}

TEST_CASE("A worker that never gets the descriptors for its generation gives up and says why") {
  if (!NoDescriptorLeft::Possible()) {
    return;
  }
  Workers workers;
  const Roster roster = MakeRoster({.number = 1}, {workers.first.entry(), workers.second.entry()});
  const NoDescriptorLeft none;
  workers.Install(workers.first, roster);
  const Status status = Result(workers.first_joined);
  REQUIRE(status.code() == StatusCode::kInternal);
  REQUIRE_THAT(status.message(), Catch::Contains("rank 1") &&
                                     Catch::Contains("Too many open files") &&
                                     Catch::Contains("ulimit -n") && Catch::Contains("3 tries"));
  workers.second.agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  REQUIRE(Result(workers.second_joined).ok());
}

TEST_CASE("A peer that refuses is dialled again before it is accused") {
  Workers workers;
  RosterEntry refuses = workers.second.entry();
  refuses.data.port = 1;  // nobody listens there
  const Instant begun = Now();
  workers.Install(workers.first, MakeRoster({.number = 1}, {workers.first.entry(), refuses}));
  const auto frame = workers.first.agent().Await(local::FrameKind::kAccuse);
  REQUIRE(Now() - begun >= 3 * kEdgeRetryDelayFirst);
  const auto accusation = local::BodyOf<local::Accuse>(frame);
  REQUIRE(accusation.ok());
  REQUIRE(local::FromWire(accusation->accused) == workers.second.agent().self());
  for (PlayedWorker* worker : {&workers.first, &workers.second}) {
    worker->agent().Send(local::MakeFrame(local::FrameKind::kLeave));
  }
  REQUIRE(Result(workers.first_joined).ok());
  REQUIRE(Result(workers.second_joined).ok());
}

}  // namespace
}  // namespace elastic::internal::testing
