#include "launcher/start/local_address.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

TEST_CASE("OnlyLoopbackAddressesAndLocalhostAreLocalHosts") {
  CHECK(LocalDataAddress("localhost").value() == "127.0.0.1");
  CHECK(LocalDataAddress("127.3.2.1").value() == "127.3.2.1");
  CHECK(LocalDataAddress("::1").value() == "::1");
  for (const char* host : {"10.0.0.1", "node7", "128.0.0.1", "::2", "127.1"}) {
    const auto address = LocalDataAddress(host);
    REQUIRE_FALSE(address.ok());
    CHECK(address.status().code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(address.status().message(), Catch::Contains(host));
    CHECK_THAT(address.status().message(), Catch::Contains("this machine only"));
  }
}

}  // namespace
}  // namespace elastic::internal
