#include "launcher/cli/parse_arguments.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

RunOptions Parsed(const Words& words) {
  const auto options = ParseArguments(words);
  INFO(options.status().message());
  REQUIRE(options.ok());
  return *options;
}

std::string Refused(const Words& words) {
  const auto options = ParseArguments(words);
  REQUIRE_FALSE(options.ok());
  CHECK(options.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(options.status().message(), !Catch::Contains("\n"));
  return options.status().message();
}

TEST_CASE("FlagsAreReadUpToTheCommandAndTheCommandIsLeftAlone") {
  const RunOptions options = Parsed({"-np",
                                     "4",
                                     "--min-np",
                                     "2",
                                     "--max-np=6",
                                     "--no-progress-limit",
                                     "0",
                                     "--allow-restart-from-zero",
                                     "--start-timeout",
                                     "5m",
                                     "-H",
                                     "a:2,b:2",
                                     "--heartbeat-timeout",
                                     "1500ms",
                                     "--elastic-timeout",
                                     "90",
                                     "--grace-period=5s",
                                     "--entry-timeout",
                                     "10m",
                                     "--log-level",
                                     "debug",
                                     "--status-address",
                                     "127.0.0.1:7000",
                                     "./train",
                                     "-np",
                                     "7",
                                     "--",
                                     "--help",
                                     ""});
  CHECK(options.np == 4);
  CHECK(options.min_np == 2);
  CHECK(options.max_np == 6);
  CHECK(options.no_progress_limit == 0);
  CHECK(options.allow_restart_from_zero);
  CHECK(options.start_timeout == 300s);
  CHECK(options.hosts == "a:2,b:2");
  CHECK(options.heartbeat_timeout == 1500ms);
  CHECK(options.elastic_timeout == 90s);
  CHECK(options.grace_period == 5s);
  CHECK(options.entry_timeout == 600s);
  CHECK(options.log_level == Severity::kDebug);
  CHECK(options.status_address == "127.0.0.1:7000");
  CHECK_FALSE(options.help);
  CHECK(options.command == Words{"./train", "-np", "7", "--", "--help", ""});
}

TEST_CASE("WithoutFlagsTheDefaultsHold") {
  const RunOptions options = Parsed({"./train"});
  CHECK_FALSE(options.np);
  CHECK_FALSE(options.min_np);
  CHECK_FALSE(options.max_np);
  CHECK(options.no_progress_limit == 3);
  CHECK_FALSE(options.allow_restart_from_zero);
  CHECK(options.start_timeout == 600s);
  CHECK(options.heartbeat_timeout == 3s);
  CHECK(options.elastic_timeout == 600s);
  CHECK(options.grace_period == 20s);
  CHECK(options.entry_timeout == 60s);
  CHECK(options.log_level == Severity::kInfo);
}

TEST_CASE("ADoubleDashIsDroppedAndEndsTheFlags") {
  const RunOptions options = Parsed({"-np", "2", "--", "-strange-name", "--help"});
  CHECK(options.command == Words{"-strange-name", "--help"});
  CHECK_FALSE(options.help);
  CHECK(Parsed({"-np", "2", "--"}).command.empty());
}

TEST_CASE("LongNamesAliasesAndEqualSignsMeanTheSame") {
  CHECK(Parsed({"-np", "3"}).np == 3);
  CHECK(Parsed({"-np=3"}).np == 3);
  CHECK(Parsed({"--num-proc", "3"}).np == 3);
  CHECK(Parsed({"--num-proc=3"}).np == 3);
  CHECK(Parsed({"--hosts=a:1"}).hosts == Parsed({"-H", "a:1"}).hosts);
  CHECK(Parsed({"-h"}).help);
  CHECK(Parsed({"--version"}).version);
}

TEST_CASE("OfAFlagGivenTwiceTheLastOneHolds") { CHECK(Parsed({"-np", "3", "-np", "5"}).np == 5); }

TEST_CASE("AnUnknownFlagIsNamedWithTheNearestKnownOne") {
  CHECK_THAT(Refused({"--min-pn", "2", "./train"}),
             Catch::Contains("'--min-pn'") && Catch::Contains("did you mean --min-np?"));
  CHECK_THAT(Refused({"--min-pn=2", "./train"}), Catch::Contains("'--min-pn'"));
  CHECK_THAT(Refused({"-np", "2", "-x", "./train"}), Catch::Contains("unknown flag '-x'"));
  CHECK_THAT(Refused({"-", "./train"}), Catch::Contains("unknown flag '-'"));
}

TEST_CASE("AFlagWithoutItsValueSaysSo") {
  CHECK_THAT(Refused({"-np"}), Catch::Contains("-np/--num-proc needs a value: -np N"));
  CHECK_THAT(Refused({"--min-np", "--log-level", "info"}),
             Catch::Contains("--min-np needs a value"));
  CHECK_THAT(Refused({"-H", "--", "./train"}), Catch::Contains("-H/--hosts needs a value"));
  CHECK_THAT(Refused({"--help=yes"}), Catch::Contains("takes no value"));
}

TEST_CASE("AValueOfTheWrongTypeIsNamedWithWhatIsWanted") {
  CHECK_THAT(Refused({"-np", "x"}), Catch::Contains("'x'") && Catch::Contains("whole number"));
  CHECK_THAT(Refused({"-np", "2.5"}), Catch::Contains("'2.5'"));
  CHECK_THAT(Refused({"-np="}), Catch::Contains("''"));
  CHECK_THAT(Refused({"-np", "99999999999"}), Catch::Contains("'99999999999'"));
  CHECK_THAT(Refused({"--no-progress-limit", "3x"}),
             Catch::Contains("'3x'") && Catch::Contains("0 or more"));
  CHECK_THAT(Refused({"--min-np", "two"}), Catch::Contains("'two'"));
  CHECK_THAT(Refused({"--grace-period", "5 parsecs"}),
             Catch::Contains("'5 parsecs'") && Catch::Contains("300ms"));
  CHECK_THAT(Refused({"--grace-period", "-1"}), Catch::Contains("'-1'"));
  CHECK_THAT(Refused({"--log-level", "loud"}),
             Catch::Contains("'loud'") && Catch::Contains("debug, info, warning or error"));
  CHECK_THAT(Refused({"--hosts="}), Catch::Contains("HOST:SLOTS"));
}

}  // namespace
}  // namespace elastic::internal
