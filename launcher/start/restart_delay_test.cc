#include "launcher/start/restart_delay.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

TEST_CASE("TheFirstDeathIsAnsweredAtOnceAndTheDelayThenDoublesToAMinute") {
  RestartDelay delay;
  const Instant born{};
  const Instant died = born + 10ms;
  CHECK(delay.AfterDeath(born, died) == 0s);
  for (const Duration expected : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    CHECK(delay.AfterDeath(born, died) == expected);
  }
}

TEST_CASE("ALongLifeStartsTheCountAnew") {
  RestartDelay delay;
  const Instant born{};
  CHECK(delay.AfterDeath(born, born + 1s) == 0s);
  CHECK(delay.AfterDeath(born, born + 1s) == 1s);
  CHECK(delay.AfterDeath(born, born + 61s) == 0s);
  CHECK(delay.AfterDeath(born, born + 1s) == 1s);
}

}  // namespace
}  // namespace elastic::internal
