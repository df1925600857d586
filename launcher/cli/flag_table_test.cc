#include "launcher/cli/flag_table.h"

#include <catch2/catch.hpp>
#include <set>

#include "launcher/cli/help.h"

namespace elastic::internal {
namespace {

TEST_CASE("EveryFlagHasOneMeaningAndIsExplainedInHelp") {
  const std::string help = HelpText();
  std::set<std::string_view> names;
  for (const Flag& flag : FlagTable()) {
    CHECK(names.insert(flag.name).second);
    CHECK((flag.alias.empty() || names.insert(flag.alias).second));
    CHECK(FindFlag(flag.name) == &flag);
    CHECK_THAT(help, Catch::Contains(std::string(flag.name)));
    CHECK(TakesValue(flag) == !flag.placeholder.empty());
  }
}

TEST_CASE("HelpShowsDefaultsWithUnitsExitCodesAndAnExample") {
  const std::string help = HelpText();
  for (const char* text :
       {"default: 3s", "default: 600s", "default: 60s", "default: 20s", "default: same as -np",
        "default: localhost with --max-np slots", "default: 3)", "default: info",
        "default: 127.0.0.1:0", "(required)", "130", "143", "Example:"}) {
    CHECK_THAT(help, Catch::Contains(text));
  }
}

TEST_CASE("HelpLinesFitIntoAHundredColumns") {
  const std::string help = HelpText();
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = help.find('\n', begin);
    REQUIRE(end != std::string::npos);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
}

TEST_CASE("AMistypedFlagFindsTheNearestName") {
  CHECK(NearestFlag("--min-pn") == "--min-np");
  CHECK(NearestFlag("--heartbeat-timeuot") == "--heartbeat-timeout");
  CHECK(NearestFlag("--heartbeat") == "--heartbeat-timeout");
  CHECK(NearestFlag("-n") == "-np");
  CHECK(NearestFlag("--wholly-different-words").empty());
}

TEST_CASE("AnEmptyWordIsNoFlag") { CHECK(FindFlag("") == nullptr); }

}  // namespace
}  // namespace elastic::internal
