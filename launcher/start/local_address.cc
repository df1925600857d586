#include "launcher/start/local_address.h"

#include <arpa/inet.h>

#include "rendezvous/base/log.h"

namespace elastic::internal {

StatusOr<std::string> LocalDataAddress(const std::string& host) {
  if (host == "localhost") {
    return std::string("127.0.0.1");
  }
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127) {
    return host;
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)) {
    return host;
  }
  return FailedPreconditionError(
      StrCat("-H has '", host,
             "', which is another machine: this version starts workers on this machine only, give "
             "localhost or loopback addresses such as 127.0.0.1:2,127.0.0.2:2"));
}

}  // namespace elastic::internal
