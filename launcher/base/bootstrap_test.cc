#include "launcher/base/bootstrap.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

AgentBootstrap Example() {
  AgentBootstrap bootstrap;
  bootstrap.job_id = "job-1";
  bootstrap.job_nonce = 0xFEDCBA9876543210ull;
  bootstrap.host = "127.0.0.2";
  bootstrap.listen_address = "127.0.0.2";
  bootstrap.slots = 3;
  bootstrap.server = "unix:/tmp/x/rendezvous.sock";
  bootstrap.folder = "/tmp/x";
  bootstrap.command = {"python3", "train.py", "a \"quoted\"\nline"};
  bootstrap.grace_period = std::chrono::milliseconds(1500);
  bootstrap.log_level = Severity::kDebug;
  return bootstrap;
}

TEST_CASE("BootstrapSurvivesTheTripThroughOneLineOfJson") {
  const std::string line = Example().ToJson();
  CHECK(line.find('\n') == std::string::npos);
  const auto read = AgentBootstrap::FromJson(line);
  REQUIRE(read.ok());
  CHECK(*read == Example());
}

TEST_CASE("BytesThatAreNoUtf8ArriveAsTheyWere") {
  AgentBootstrap bootstrap = Example();
  bootstrap.command = {"./train", "\xff\xfe\x80", "100%", "%41", "caf\xc3\xa9", "", "\x01\x7f"};
  bootstrap.folder = "/tmp/\xe8";
  bootstrap.server = "unix:/tmp/\xe8/rendezvous.sock";
  const std::string line = bootstrap.ToJson();
  CHECK(line.find('\n') == std::string::npos);
  const auto read = AgentBootstrap::FromJson(line);
  REQUIRE(read.ok());
  CHECK(*read == bootstrap);
}

TEST_CASE("ABootstrapTooLongForAnAgentIsRefusedWithBothSizes") {
  AgentBootstrap bootstrap = Example();
  CHECK(bootstrap.CheckSize().ok());
  bootstrap.command.push_back(std::string(kBootstrapBytesMax, 'x'));
  const Status refused = bootstrap.CheckSize();
  CHECK(refused.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(refused.message(), Catch::Contains(std::to_string(bootstrap.ToJson().size())) &&
                                    Catch::Contains(std::to_string(kBootstrapBytesMax)));
}

TEST_CASE("BootstrapWithAMissingOrWrongFieldIsRefusedByName") {
  const auto refused = [](const std::string& from, const std::string& to, const char* name) {
    std::string line = Example().ToJson();
    const size_t at = line.find(from);
    REQUIRE(at != std::string::npos);
    line.replace(at, from.size(), to);
    const auto read = AgentBootstrap::FromJson(line);
    REQUIRE(!read.ok());
    CHECK(read.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(read.error().message(), Catch::Contains(name));
  };
  refused("\"slots\":3", "\"slots\":0", "slots");
  refused("\"slots\":3", "\"slits\":3", "slots");
  refused("\"version\":1", "\"version\":2", "version");
  refused("\"log_level\":\"debug\"", "\"log_level\":\"loud\"", "log_level");
  refused("\"python3\"", "\"python%4\"", "command");
  refused("\"python3\"", "\"python%+4\"", "command");
  refused("\"python3\"", "7", "bootstrap");
  CHECK(AgentBootstrap::FromJson("").status().code() == StatusCode::kInvalidArgument);
  CHECK(AgentBootstrap::FromJson("[1]").status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace elastic::internal
