#include <catch2/catch.hpp>

#include "rendezvous/base/log.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

JobSpec Valid() {
  return {.job_id = "job",
          .np = 4,
          .min_np = 2,
          .max_np = 4,
          .hosts = {{"127.0.0.1", 2}, {"127.0.0.2", 2}}};
}

void CheckRefused(const JobSpec& job, StatusCode code, const std::string& text) {
  const Status status = CheckJob(job);
  CHECK(status.code() == code);
  CHECK_THAT(status.message(), Catch::Contains(text) && !Catch::Contains("\n"));
}

TEST_CASE("AJobWithinAllLimitsIsTaken") {
  CHECK(CheckJob(Valid()).ok());
  JobSpec job = Valid();
  job.job_id = std::string(kJobIdBytesMax, 'x');
  job.min_np = job.np;
  job.heartbeat_timeout = kHeartbeatTimeoutMin;
  CHECK(CheckJob(job).ok());
}

TEST_CASE("ACountOfWorkersOutOfRangeIsNamed") {
  JobSpec job = Valid();
  job.np = 0;
  CheckRefused(job, StatusCode::kInvalidArgument, "-np 0: want at least 1");
  job.np = -3;
  CheckRefused(job, StatusCode::kInvalidArgument, "-np -3");
  job.np = kMembersMax + 1;
  CheckRefused(job, StatusCode::kResourceExhausted, StrCat("-np ", kMembersMax + 1));
}

TEST_CASE("MinNpLiesBetweenOneAndNp") {
  JobSpec job = Valid();
  job.min_np = 5;
  CheckRefused(job, StatusCode::kInvalidArgument, "--min-np 5 is more than -np 4");
  job.min_np = 0;
  CheckRefused(job, StatusCode::kInvalidArgument, "--min-np 0");
}

TEST_CASE("MaxNpLiesBetweenNpAndTheLimitOfAJob") {
  JobSpec job = Valid();
  job.max_np = 3;
  CheckRefused(job, StatusCode::kInvalidArgument, "--max-np 3 is less than -np 4");
  job.max_np = kMembersMax + 1;
  CheckRefused(job, StatusCode::kResourceExhausted, StrCat("--max-np ", kMembersMax + 1));
  job.max_np = 100;  // more than there are slots: those are the limit
  CHECK(CheckJob(job).ok());
}

TEST_CASE("ANegativeNoProgressLimitIsRefusedAndZeroMeansNone") {
  JobSpec job = Valid();
  job.no_progress_limit = -1;
  CheckRefused(job, StatusCode::kInvalidArgument, "--no-progress-limit -1");
  job.no_progress_limit = 0;
  CHECK(CheckJob(job).ok());
}

TEST_CASE("AStartWithoutTimeIsRefused") {
  JobSpec job = Valid();
  job.start_timeout = 0s;
  CheckRefused(job, StatusCode::kInvalidArgument, "--start-timeout 0");
}

TEST_CASE("FewerSlotsThanWorkersNamesBothNumbersAndTheHosts") {
  JobSpec job = Valid();
  job.hosts[0].slots = 1;
  CheckRefused(job, StatusCode::kFailedPrecondition,
               "need 4 slots (-np), have 3 on 127.0.0.1:1,127.0.0.2:2");
}

TEST_CASE("AHostWithTooManySlotsIsNamed") {
  JobSpec job = Valid();
  job.hosts[1].slots = kSlotsPerHostMax + 1;
  CheckRefused(job, StatusCode::kResourceExhausted, "host 127.0.0.2 has 257 slots");
}

TEST_CASE("TimesThatCannotWorkAreRefused") {
  JobSpec job = Valid();
  job.heartbeat_timeout = kHeartbeatTimeoutMin - 1ms;
  CheckRefused(job, StatusCode::kInvalidArgument, "--heartbeat-timeout 499ms");
  job = Valid();
  job.entry_timeout = 0s;
  CheckRefused(job, StatusCode::kInvalidArgument, "--entry-timeout 0");
}

TEST_CASE("AJobIdThatDoesNotFitIntoAHelloIsRefused") {
  JobSpec job = Valid();
  job.job_id = std::string(kJobIdBytesMax + 1, 'x');
  CheckRefused(job, StatusCode::kInvalidArgument, "want 1 to 63 bytes, have 64");
  job.job_id.clear();
  CheckRefused(job, StatusCode::kInvalidArgument, "--job-id ''");
}

}  // namespace
}  // namespace elastic::internal
