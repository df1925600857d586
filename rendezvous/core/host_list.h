#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/status.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// Reads `host[:slots],...` as -H takes it: names, IPv4 addresses, or IPv6 addresses in brackets
// when slots follow (`[::1]:2`). Blanks around a host are left out. A host without slots has one.
// Order is kept: ranks follow it. Pure: resolves nothing. Errors: INVALID_ARGUMENT names the part
// that is malformed, given twice or has no slots; RESOURCE_EXHAUSTED names the limit of limits.h
// that it passes.
StatusOr<std::vector<HostSpec>> ParseHostList(std::string_view text);

// The names as -H would take them, for messages: `127.0.0.1:2,127.0.0.2:2`.
std::string FormatHostList(const std::vector<HostSpec>& hosts);
int CountSlots(const std::vector<HostSpec>& hosts);

}  // namespace elastic::internal
