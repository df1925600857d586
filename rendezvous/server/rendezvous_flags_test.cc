#include <catch2/catch.hpp>
#include <vector>

#include "rendezvous/server/rendezvous_flags.h"

namespace elastic::internal {

namespace {

ParsedFlags Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "elastic-rendezvous");
  return ParseRendezvousFlags(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST_CASE("The flags of elastic-rendezvous make a job") {
  const ParsedFlags parsed =
      Parse({"-np", "3", "--min-np", "2", "-H", "a:2,b", "--port", "4000", "--heartbeat-timeout",
             "5s", "--log-level", "debug", "--max-np", "5", "--no-progress-limit", "0",
             "--start-timeout", "7s", "--allow-restart-from-zero"});
  REQUIRE(parsed.flags.has_value());
  const JobSpec& job = parsed.flags->job;
  CHECK(job.np == 3);
  CHECK(job.min_np == 2);
  CHECK(job.max_np == 5);
  CHECK(job.no_progress_limit == 0);
  CHECK(job.start_timeout == std::chrono::seconds(7));
  CHECK(job.allow_restart_from_zero);
  REQUIRE(job.hosts.size() == 2);
  CHECK(job.hosts[0].name == "a");
  CHECK(job.hosts[0].slots == 2);
  CHECK(job.hosts[1].name == "b");
  CHECK(job.hosts[1].slots == 1);
  CHECK(job.heartbeat_timeout == std::chrono::seconds(5));
  CHECK(job.orphan_limit == std::chrono::minutes(10));
  CHECK(parsed.flags->agent_address == "127.0.0.1:4000");
  CHECK(parsed.flags->log_level == Severity::kDebug);
}

TEST_CASE("The fewest workers default to all of them, and agents may come by a Unix socket") {
  const ParsedFlags parsed = Parse({"--np", "2", "-H", "a:2", "--listen", "unix:/run/x"});
  REQUIRE(parsed.flags.has_value());
  CHECK(parsed.flags->job.min_np == 2);
  CHECK(parsed.flags->agent_address == "unix:/run/x");
}

TEST_CASE("Without a job of its own elastic-rendezvous stands") {
  const ParsedFlags parsed = Parse({"--port", "4000", "--status-address", "unix:/run/y"});
  REQUIRE(parsed.flags.has_value());
  CHECK(parsed.flags->standing);
  CHECK(parsed.flags->agent_address == "127.0.0.1:4000");
  CHECK(parsed.flags->status_address == "unix:/run/y");
  CHECK_FALSE(Parse({"-np", "1", "-H", "a:1"}).flags->standing);
}

TEST_CASE("Wrong flags of elastic-rendezvous end with exit code 2") {
  const std::vector<std::vector<const char*>> wrong = {
      {"--orphan-limit", "1m"},  // a job's, and there is none
      {"-H", "a:2"},
      {"-np", "2"},
      {"-np", "0", "-H", "a:2"},
      {"-np", "x", "-H", "a:2"},
      {"-np", "3", "-H", "a:2"},
      {"-np", "2", "--min-np", "3", "-H", "a:2"},
      {"-np", "2", "--min-np", "0", "-H", "a:2"},
      {"-np", "2", "--max-np", "1", "-H", "a:2"},
      {"-np", "2", "--no-progress-limit", "-1", "-H", "a:2"},
      {"-np", "2", "--start-timeout", "0", "-H", "a:2"},
      {"-np", "2", "-H", "a:0"},
      {"-np", "2", "-H", "a:b"},
      {"-np", "2", "-H", ":2"},
      {"-np", "2", "-H", "a:1:2"},
      {"-np", "2", "-H", "a:1,a:1"},
      {"-np", "2", "-H", "a:2", "--port", "70000"},
      {"-np", "2", "-H", "a:2", "--heartbeat-timeout", "1ms"},
      {"-np", "2", "-H", "a:2", "--entry-timeout", "soon"},
      {"-np", "2", "-H", "a:2", "--entry-timeout", "0"},
      {"-np", "2", "-H", "a:2", "--job-id",
       "an-id-of-more-than-sixty-three-bytes-does-not-fit-into-a-worker-s-hello"},
      {"-np", "2", "-H", "a:2", "--log-level", "loud"},
      {"-np", "2", "-H", "a:2", "--nonsense"},
  };
  for (const auto& words : wrong) {
    INFO(words.size() << " words, the last " << (words.empty() ? "" : words.back()));
    const ParsedFlags parsed = Parse(words);
    CHECK(!parsed.flags.has_value());
    CHECK(parsed.exit_code == 2);
  }
}

TEST_CASE("Help and version of elastic-rendezvous end with exit code 0") {
  for (const char* word : {"--help", "--version"}) {
    const ParsedFlags parsed = Parse({word});
    CHECK(!parsed.flags.has_value());
    CHECK(parsed.exit_code == 0);
  }
}

}  // namespace elastic::internal
