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
    const uint32_t low = ntohl(v4.s_addr) & 0xFFFFFF;
    if (low == 0 || low == 0xFFFFFF) {
      return InvalidArgumentError(
          StrCat("-H has '", host,
                 "', the address of the whole loopback network, to which nobody "
                 "can connect: give one inside it, such as 127.0.0.1"));
    }
    return host;
  }
  if (host.find_first_not_of("0123456789.") == std::string::npos && v4.s_addr == 0) {
    return InvalidArgumentError(
        StrCat("-H has '", host, "', which is no IPv4 address: want four numbers from 0 to 255"));
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)) {
    return host;
  }
  // `::1:4` is an address of its own, though the user may have meant host ::1 with four slots.
  const std::string_view hint =
      host.starts_with("::1:") ? " (slots of an IPv6 host need brackets before them: [::1]:4)" : "";
  return FailedPreconditionError(
      StrCat("-H has '", host, "', which is another machine", hint,
             ": this version starts workers on this machine only, give "
             "localhost or loopback addresses such as 127.0.0.1:2,127.0.0.2:2"));
}

}  // namespace elastic::internal
