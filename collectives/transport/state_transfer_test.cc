#include <poll.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "collectives/testing/group.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/rng.h"

using namespace elastic::internal;
using Catch::Matchers::Contains;

namespace {

class FakeSource final : public StateSource {
 public:
  Answer Offer(const GenerationId& generation, WorkerIncarnation whose) override {
    ++asked;
    last_generation = generation;
    last_whose = whose;
    return answer;
  }
  void Done(const GenerationId&, WorkerIncarnation asker) override {
    ++done;
    last_asker = asker;
  }
  Answer answer;
  int asked = 0, done = 0;
  GenerationId last_generation;
  WorkerIncarnation last_whose, last_asker;
};

std::vector<std::byte> RandomBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  Rng rng(count);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(rng.Next());
  }
  return bytes;
}

Held HeldOf(const std::vector<std::byte>& bytes) {
  return {.version = {.generation = {4}, .commits = 9},
          .digest = HashBytes(bytes.data(), bytes.size()),
          .step = 77};
}

// Worker 0 holds state, worker 1 wants it.
struct Pair {
  explicit Pair(size_t bytes) : state(RandomBytes(bytes)), target(bytes) {
    for (int rank = 0; rank < 2; ++rank) {
      contexts.push_back(std::move(*Context::Create({.listen_address = "127.0.0.1",
                                                     .job_id = "test-job",
                                                     .job_nonce = kTestNonce,
                                                     .self = TestWorker(rank),
                                                     .source = rank == 0 ? &source : nullptr})));
    }
    roster = TestRoster(5, contexts);
    source.answer = {.verdict = StateSource::Verdict::kNow,
                     .view = {.held = HeldOf(state), .bytes = state}};
  }
  void Fetch() {
    contexts[1]->Fetch(
        roster, roster.entries[0],
        [this](Context::Offer came) {
          offer = came;
          if (accept) {
            contexts[1]->AcceptOffer(target);
          }
        },
        [this](StatusOr<Held> came) { result = std::move(came); });
  }
  void PumpUntil(const std::function<bool()>& done) {
    std::vector<Context*> all;
    for (const auto& context : contexts) {
      if (context) {
        all.push_back(context.get());
      }
    }
    elastic::internal::PumpUntil(all, done);
  }
  void AwaitResult() {
    PumpUntil([this] { return result.has_value(); });
  }

  FakeSource source;
  std::vector<std::byte> state, target;
  std::vector<std::unique_ptr<Context>> contexts;
  Roster roster;
  bool accept = true;
  std::optional<Context::Offer> offer;
  std::optional<StatusOr<Held>> result;
};

}  // namespace

TEST_CASE("StateComesWholeAndVerified") {
  const size_t bytes = GENERATE(size_t{0}, size_t{1}, size_t{100'003}, size_t{64} << 20);
  Pair pair(bytes);
  pair.Fetch();
  pair.AwaitResult();
  REQUIRE(pair.result->status() == OkStatus());
  CHECK(**pair.result == HeldOf(pair.state));
  CHECK(pair.offer->bytes == bytes);
  CHECK(pair.offer->held == HeldOf(pair.state));
  CHECK(pair.target == pair.state);
  CHECK(pair.source.last_generation == pair.roster.id);
  CHECK(pair.source.last_whose == TestWorker(0));
  pair.PumpUntil([&] { return pair.source.done == 1; });
  CHECK(pair.source.last_asker == TestWorker(1));
}

TEST_CASE("CorruptedStateIsDataLoss") {
  Pair pair(1 << 20);
  pair.state[500'000] ^= std::byte{1};
  pair.Fetch();
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kDataLoss);
  CHECK_THAT(pair.result->status().message(), Contains("(4, 9)"));
}

TEST_CASE("AHolderThatDiesInMidTransferIsUnavailable") {
  Pair pair(64 << 20);
  pair.state[0] = std::byte{1};
  pair.Fetch();
  pair.PumpUntil([&] { return pair.target[0] != std::byte{0}; });
  pair.contexts[0].reset();
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kUnavailable);
  CHECK_THAT(pair.result->status().message(), Contains("of 67108864 bytes"));
}

TEST_CASE("AHolderThatIsGoneIsUnavailable") {
  Pair pair(10);
  SECTION("before the call") {
    pair.contexts[0].reset();
    pair.Fetch();
  }
  SECTION("after its offer") {
    pair.accept = false;
    pair.Fetch();
    pair.PumpUntil([&] { return pair.offer.has_value(); });
    pair.contexts[0].reset();
  }
  SECTION("while it keeps the request") {
    pair.source.answer.verdict = StateSource::Verdict::kLater;
    pair.Fetch();
    pair.PumpUntil([&] { return pair.source.asked == 1; });
    pair.contexts[0].reset();
  }
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kUnavailable);
}

TEST_CASE("AHolderThatHasNotPassedTheBoundaryIsAskedAgainWhenItHas") {
  Pair pair(1000);
  pair.source.answer.verdict = StateSource::Verdict::kLater;
  pair.Fetch();
  pair.PumpUntil([&] { return pair.source.asked == 1; });
  pair.contexts[0]->RetryRequests();
  CHECK(pair.source.asked == 2);
  CHECK_FALSE(pair.offer);
  pair.source.answer.verdict = StateSource::Verdict::kNow;
  pair.contexts[0]->RetryRequests();
  CHECK(pair.source.asked == 3);
  pair.AwaitResult();
  CHECK(pair.result->status() == OkStatus());
  CHECK(pair.target == pair.state);
}

TEST_CASE("AWorkerThatHoldsNothingSaysSo") {
  Pair pair(10);
  pair.source.answer = {};
  pair.Fetch();
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kUnavailable);
  CHECK_THAT(pair.result->status().message(), Contains("does not hold that state"));
  CHECK(pair.source.done == 0);
}

TEST_CASE("AnOfferMayBeAcceptedLater") {
  Pair pair(100'000);
  pair.accept = false;
  pair.Fetch();
  pair.PumpUntil([&] { return pair.offer.has_value(); });
  pair.contexts[1]->AcceptOffer(pair.target);
  pair.AwaitResult();
  CHECK(pair.result->status() == OkStatus());
  CHECK(pair.target == pair.state);
}

TEST_CASE("MemoryThatIsTooSmallForTheOfferIsRefused") {
  Pair pair(1000);
  pair.target.resize(999);
  pair.Fetch();
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(pair.result->status().message(), Contains("1000") && Contains("999"));
}

TEST_CASE("CancelEndsTransfersOnBothSidesAndTellsTheSource") {
  Pair pair(64 << 20);
  pair.state[0] = std::byte{1};
  pair.Fetch();
  pair.PumpUntil([&] { return pair.target[0] != std::byte{0}; });
  SECTION("by the one that fetches") {
    pair.contexts[1]->Cancel({5});
    pair.PumpUntil([&] { return pair.source.done == 1; });
    CHECK_FALSE(pair.result);
  }
  SECTION("by the holder") {
    pair.contexts[0]->Cancel({5});
    CHECK(pair.source.done == 1);
    pair.AwaitResult();
    CHECK(pair.result->status().code() == StatusCode::kUnavailable);
  }
}

TEST_CASE("AFetchOfAGenerationThatIsOverAtTheHolderIsAborted") {
  Pair pair(10);
  pair.contexts[0]->Cancel({5});
  pair.Fetch();
  pair.AwaitResult();
  CHECK(pair.result->status().code() == StatusCode::kAborted);
  CHECK(pair.source.asked == 0);
}

TEST_CASE("ASecondFetchTakesThePlaceOfTheFirst") {
  Pair pair(1000);
  pair.source.answer.verdict = StateSource::Verdict::kLater;
  pair.Fetch();
  pair.PumpUntil([&] { return pair.source.asked == 1; });
  pair.source.answer.verdict = StateSource::Verdict::kNow;
  pair.Fetch();
  pair.AwaitResult();
  CHECK(pair.result->status() == OkStatus());
  CHECK(pair.source.asked == 2);
}

TEST_CASE("SeveralNewcomersFetchFromOneHolderAtOnce") {
  const std::vector<std::byte> state = RandomBytes(3 << 20);
  FakeSource source;
  source.answer = {.verdict = StateSource::Verdict::kNow,
                   .view = {.held = HeldOf(state), .bytes = state}};
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<Context*> all;
  for (int rank = 0; rank < 4; ++rank) {
    contexts.push_back(std::move(*Context::Create({.listen_address = "127.0.0.1",
                                                   .job_id = "test-job",
                                                   .job_nonce = kTestNonce,
                                                   .self = TestWorker(rank),
                                                   .source = &source})));
    all.push_back(contexts.back().get());
  }
  const Roster roster = TestRoster(5, contexts);
  std::vector<std::vector<std::byte>> targets(4, std::vector<std::byte>(state.size()));
  size_t done = 0;
  for (size_t i = 1; i < 4; ++i) {
    contexts[i]->Fetch(
        roster, roster.entries[0], [&, i](Context::Offer) { contexts[i]->AcceptOffer(targets[i]); },
        [&](StatusOr<Held> held) { done += held.ok() ? 1 : 100; });
  }
  PumpUntil(all, [&] { return done >= 3 && source.done == 3; });
  CHECK(done == 3);
  for (size_t i = 1; i < 4; ++i) {
    CHECK(targets[i] == state);
  }
}
