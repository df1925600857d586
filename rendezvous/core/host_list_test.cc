#include "rendezvous/core/host_list.h"

#include <catch2/catch.hpp>

#include "rendezvous/base/limits.h"

namespace elastic::internal {
namespace {

Status ErrorOf(std::string_view text) {
  const auto hosts = ParseHostList(text);
  REQUIRE_FALSE(hosts.ok());
  return hosts.status();
}

TEST_CASE("HostsKeepTheOrderAndTheSlotsTheUserGave") {
  const auto hosts = ParseHostList("127.0.0.2:2, localhost:1 ,[::1]:3,node-1");
  REQUIRE(hosts.ok());
  REQUIRE(hosts->size() == 4);
  CHECK((*hosts)[0].name == "127.0.0.2");
  CHECK((*hosts)[0].slots == 2);
  CHECK((*hosts)[1].name == "localhost");
  CHECK((*hosts)[2].name == "::1");
  CHECK((*hosts)[2].slots == 3);
  CHECK((*hosts)[3].name == "node-1");
  CHECK((*hosts)[3].slots == 1);
  CHECK(CountSlots(*hosts) == 7);
  CHECK(FormatHostList(*hosts) == "127.0.0.2:2,localhost:1,[::1]:3,node-1:1");
}

TEST_CASE("AMalformedHostIsRefusedWithThePartThatIsWrongAndTheFormWanted") {
  const auto [text, part] = GENERATE(table<std::string, std::string>({
      {"a:", "'a:'"},
      {"a:x", "'x'"},
      {"a:1x", "'1x'"},
      {"a:-1", "'a:-1'"},
      {":2", "':2'"},
      {"a:0", "'a:0'"},
      {"a:1:2", "'a:1:2'"},
      {"a b:1", "'a b:1'"},
      {"[::1:2", "'[::1:2'"},
      {"[nonsense]:2", "'[nonsense]:2'"},
      {"[::1]2", "'[::1]2'"},
      {std::string("a::\0b", 5), "more than one colon"},
      {std::string("[::1\0b]:2", 9), "no IPv6 address"},
      {"a:1,,b:1", "empty host"},
      {"a:1,", "empty host"},
      {"a:1, ", "empty host"},
      {"", "empty host"},
      {"a:1,a:2", "'a'"},
  }));
  const Status error = ErrorOf(text);
  CHECK(error.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(error.message(), Catch::Contains(part));
  CHECK_THAT(error.message(), Catch::Contains("want host:slots"));
}

TEST_CASE("TooManySlotsOfOneHostNameTheLimit") {
  const std::string limit = std::to_string(kSlotsPerHostMax);
  CHECK(ParseHostList("a:" + limit).ok());
  for (const char* text : {"a:257", "a:99999999999999"}) {
    const Status error = ErrorOf(text);
    CHECK(error.code() == StatusCode::kResourceExhausted);
    CHECK_THAT(error.message(), Catch::Contains("at most " + limit));
  }
}

TEST_CASE("TooManyHostsAndTooLongNamesAreRefused") {
  std::string many = "h0";
  for (int i = 1; i < kHostsMax; ++i) {
    many += ",h" + std::to_string(i);
  }
  CHECK(ParseHostList(many).ok());
  CHECK(ErrorOf(many + ",one-more").code() == StatusCode::kResourceExhausted);
  CHECK(ErrorOf(std::string(kHostNameBytesMax + 1, 'a')).code() == StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace elastic::internal
