#include "rendezvous/core/host_list.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kForm =
    "want host:slots, separated by commas, for example -H 127.0.0.1:2,127.0.0.2:2";

Status Malformed(std::string_view part, std::string_view what) {
  return InvalidArgumentError(StrCat("-H has '", part, "', ", what, ": ", kForm));
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool IsIpv6(const std::string& text) {
  in6_addr address{};
  // inet_pton would take what stands before a zero byte.
  return text.find('\0') == std::string::npos && inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

struct NameAndSlots {
  std::string name;
  std::string_view slots;  // what follows the colon
  bool has_slots = false;
};

StatusOr<NameAndSlots> SplitBracketed(std::string_view part) {
  const size_t close = part.find(']');
  if (close == std::string_view::npos) {
    return Malformed(part, "a bracket without its end");
  }
  NameAndSlots split{std::string(part.substr(1, close - 1)), {}, false};
  const std::string_view rest = part.substr(close + 1);
  if (!IsIpv6(split.name) || (!rest.empty() && rest.front() != ':')) {
    return Malformed(part, "which is no IPv6 address in brackets");
  }
  if (!rest.empty()) {
    split.slots = rest.substr(1);
    split.has_slots = true;
  }
  return split;
}

StatusOr<NameAndSlots> Split(std::string_view part) {
  if (part.front() == '[') {
    return SplitBracketed(part);
  }
  if (std::ranges::count(part, ':') > 1) {
    if (IsIpv6(std::string(part))) {
      return NameAndSlots{std::string(part), {}, false};
    }
    return Malformed(part, "which has more than one colon (an IPv6 address needs brackets)");
  }
  const size_t colon = part.find(':');
  NameAndSlots split{std::string(part.substr(0, colon)), {}, colon != std::string_view::npos};
  if (split.has_slots) {
    split.slots = part.substr(colon + 1);
  }
  if (split.name.empty()) {
    return Malformed(part, "which has no host name");
  }
  if (!std::ranges::all_of(split.name, IsNameCharacter)) {
    return Malformed(part, "which is no host name");
  }
  return split;
}

StatusOr<int32_t> ParseSlots(std::string_view part, const NameAndSlots& split) {
  if (!split.has_slots) {
    return 1;
  }
  if (split.slots.empty()) {
    return Malformed(part, "which has a colon but no number of slots");
  }
  int32_t slots = 0;
  const char* end = split.slots.data() + split.slots.size();
  const auto parsed = std::from_chars(split.slots.data(), end, slots);
  if (parsed.ec == std::errc::result_out_of_range) {
    slots = kSlotsPerHostMax + 1;
  } else if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Malformed(part, StrCat("whose slots '", split.slots, "' are no whole number"));
  }
  if (slots < 1) {
    return Malformed(part, "which has no slot: leave the host out or give it at least 1");
  }
  if (slots > kSlotsPerHostMax) {
    return ResourceExhaustedError(StrCat("-H has '", part, "': one host can have at most ",
                                         kSlotsPerHostMax,
                                         " slots, spread the workers over more hosts"));
  }
  return slots;
}

}  // namespace

StatusOr<std::vector<HostSpec>> ParseHostList(std::string_view text) {
  std::vector<HostSpec> hosts;
  std::set<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = Trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (part.empty()) {
      return InvalidArgumentError(StrCat("-H '", text, "' has an empty host: ", kForm));
    }
    ASSIGN_OR_RETURN(const NameAndSlots split, Split(part));
    ASSIGN_OR_RETURN(const int32_t slots, ParseSlots(part, split));
    if (split.name.size() > kHostNameBytesMax) {
      return ResourceExhaustedError(StrCat("-H has a host name of ", split.name.size(),
                                           " bytes, the longest allowed is ", kHostNameBytesMax));
    }
    if (!names.insert(split.name).second) {
      return Malformed(split.name, "more than once: add its slots together");
    }
    hosts.push_back({split.name, slots});
    if (hosts.size() > static_cast<size_t>(kHostsMax)) {
      return ResourceExhaustedError(StrCat("-H has more than ", kHostsMax, " hosts"));
    }
  }
  return hosts;
}

std::string FormatHostList(const std::vector<HostSpec>& hosts) {
  std::string text;
  for (const HostSpec& host : hosts) {
    const bool v6 = host.name.find(':') != std::string::npos;
    text +=
        StrCat(text.empty() ? "" : ",", v6 ? "[" : "", host.name, v6 ? "]" : "", ":", host.slots);
  }
  return text;
}

int CountSlots(const std::vector<HostSpec>& hosts) {
  int slots = 0;
  for (const HostSpec& host : hosts) {
    slots += host.slots;
  }
  return slots;
}

}  // namespace elastic::internal
