#include "launcher/cli/run_options.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

RunOptions Valid() {
  RunOptions options;
  options.np = 4;
  options.command = {"./train"};
  return options;
}

Status ErrorOf(const RunOptions& options) {
  const auto job = MakeJobSpec(options, "job");
  REQUIRE_FALSE(job.ok());
  CHECK_THAT(job.status().message(), !Catch::Contains("\n"));
  return job.status();
}

TEST_CASE("WithoutHostsAllWorkersRunOnLocalhostAndMinNpIsNp") {
  const auto job = MakeJobSpec(Valid(), "job");
  REQUIRE(job.ok());
  REQUIRE(job->hosts.size() == 1);
  CHECK(job->hosts[0].name == "localhost");
  CHECK(job->hosts[0].slots == 4);
  CHECK(job->np == 4);
  CHECK(job->min_np == 4);
  CHECK(job->max_np == 4);
}

TEST_CASE("WithoutHostsLocalhostHasRoomForTheMostWorkers") {
  RunOptions options = Valid();
  options.max_np = 6;
  const auto job = MakeJobSpec(options, "job");
  REQUIRE(job.ok());
  CHECK(job->hosts[0].slots == 6);
  CHECK(job->np == 4);
  CHECK(job->max_np == 6);
}

TEST_CASE("SlotsBetweenNpAndMaxNpAreEnough") {
  RunOptions options = Valid();
  options.max_np = 8;
  options.hosts = "127.0.0.1:3,127.0.0.2:2";
  CHECK(MakeJobSpec(options, "job").ok());
}

TEST_CASE("TheJobTakesItsLimitsFromTheFlags") {
  RunOptions options = Valid();
  options.min_np = 2;
  options.max_np = 5;
  options.no_progress_limit = 0;
  options.allow_restart_from_zero = true;
  options.start_timeout = 9s;
  options.hosts = "127.0.0.1:2,127.0.0.2:3";
  options.heartbeat_timeout = 1s;
  options.elastic_timeout = 2s;
  options.entry_timeout = 4s;
  options.grace_period = 7s;
  const auto job = MakeJobSpec(options, "job");
  REQUIRE(job.ok());
  CHECK(job->min_np == 2);
  CHECK(job->max_np == 5);
  CHECK(job->no_progress_limit == 0);
  CHECK(job->allow_restart_from_zero);
  CHECK(job->start_timeout == 9s);
  CHECK(job->hosts.size() == 2);
  CHECK(job->heartbeat_timeout == 1s);
  CHECK(job->elastic_timeout == 2s);
  CHECK(job->entry_timeout == 4s);
  CHECK(job->grace_period == 7s);
}

TEST_CASE("WithAStandingServerWorkersMayLiveLongerWithoutIt") {
  RunOptions options = Valid();
  CHECK(MakeJobSpec(options, "job")->orphan_limit == 30s);
  options.rendezvous = "127.0.0.1:4000";
  CHECK(MakeJobSpec(options, "job")->orphan_limit == 10min);
  options.orphan_limit = 2min;
  CHECK(MakeJobSpec(options, "job")->orphan_limit == 2min);
  options.status_address = "127.0.0.1:4001";
  CHECK(ErrorOf(options).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("TheNumberOfWorkersMustBeGiven") {
  RunOptions options = Valid();
  options.np.reset();
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("-np is missing"));
}

TEST_CASE("FlagsAfterTheCommandAreItsOwnAndAMissingCountSaysSo") {
  RunOptions options = Valid();
  options.np.reset();
  options.command = {"./train", "-np", "2"};
  CHECK_THAT(ErrorOf(options).message(),
             Catch::Contains("the '-np' after ./train is an argument of that program"));
  options.np = 2;
  CHECK(MakeJobSpec(options, "job").ok());
}

TEST_CASE("TwoNamesOfOneAddressAreRefused") {
  RunOptions options = Valid();
  options.hosts = "127.0.0.1:2,localhost:2";
  const Status error = ErrorOf(options);
  CHECK(error.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(error.message(), Catch::Contains("'127.0.0.1' and 'localhost'"));
}

TEST_CASE("WhatCheckJobRefusesIsRefused") {
  RunOptions options = Valid();
  options.np = 0;
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("-np 0: want at least 1"));
  options.np = kSlotsPerHostMax + 1;
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("-H"));
  options = Valid();
  options.min_np = 5;
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("--min-np 5 is more than -np 4"));
  options = Valid();
  options.hosts = "127.0.0.1:1,127.0.0.2:2";
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("need 4 slots (-np), have 3"));
  options = Valid();
  options.entry_timeout = 0s;
  CHECK_THAT(ErrorOf(options).message(), Catch::Contains("--entry-timeout 0"));
}

TEST_CASE("AHostThatIsAnotherMachineIsRefused") {
  RunOptions options = Valid();
  options.hosts = "localhost:2,node7:2";
  const Status error = ErrorOf(options);
  CHECK(error.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(error.message(), Catch::Contains("'node7'"));
}

TEST_CASE("AMalformedHostListIsRefused") {
  RunOptions options = Valid();
  options.hosts = "localhost:";
  CHECK(ErrorOf(options).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("AMissingCommandIsAnErrorWithAnExample") {
  RunOptions options = Valid();
  options.command.clear();
  const Status error = ErrorOf(options);
  CHECK(error.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(error.message(), Catch::Contains("no command to run"));
}

}  // namespace
}  // namespace elastic::internal
