#include "launcher/start/local_address.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

TEST_CASE("OnlyLoopbackAddressesAndLocalhostAreLocalHosts") {
  CHECK(LocalDataAddress("localhost").value() == "127.0.0.1");
  CHECK(LocalDataAddress("127.3.2.1").value() == "127.3.2.1");
  CHECK(LocalDataAddress("::1").value() == "::1");
  for (const char* host : {"10.0.0.1", "node7", "128.0.0.1", "::2", "127.0.0.1.example"}) {
    const auto address = LocalDataAddress(host);
    REQUIRE_FALSE(address.ok());
    CHECK(address.status().code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(address.status().message(), Catch::Contains(host));
    CHECK_THAT(address.status().message(), Catch::Contains("this machine only"));
  }
}

TEST_CASE("AnAddressThatNobodyCanUseIsRefusedForWhatItIs") {
  for (const char* host : {"127.0.0.256", "127.1", "1.2.3.4.5", "7"}) {
    const auto address = LocalDataAddress(host);
    REQUIRE_FALSE(address.ok());
    CHECK(address.status().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(address.status().message(), Catch::Contains("no IPv4 address"));
  }
  for (const char* host : {"127.255.255.255", "127.0.0.0"}) {
    const auto address = LocalDataAddress(host);
    REQUIRE_FALSE(address.ok());
    CHECK(address.status().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(address.status().message(), Catch::Contains("whole loopback network"));
  }
}

TEST_CASE("SlotsBehindABareIpv6AddressAreToldToNeedBrackets") {
  CHECK_THAT(LocalDataAddress("::1:4").status().message(), Catch::Contains("[::1]:4"));
}

}  // namespace
}  // namespace elastic::internal
