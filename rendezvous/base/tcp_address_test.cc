#include "rendezvous/base/tcp_address.h"

#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

TEST_CASE("AddressNeedsAHostAndAPortThatExists") {
  for (const char* good : {"127.0.0.1:0", "127.0.0.1:65535", "localhost:80", "[::1]:7"}) {
    CAPTURE(good);
    CHECK(HasTcpPort(good));
  }
  for (const char* bad : {"", "nonsense", ":80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:99999",
                          "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:8x", "127.0.0.1: 8"}) {
    CAPTURE(bad);
    CHECK_FALSE(HasTcpPort(bad));
  }
}

}  // namespace
}  // namespace elastic::internal
