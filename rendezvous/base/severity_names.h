#pragma once

#include <optional>
#include <string_view>

#include "rendezvous/base/log.h"

namespace elastic::internal {

// The words of --log-level, and of the bootstrap.
std::string_view SeverityName(Severity severity);
std::optional<Severity> ParseSeverity(std::string_view name);

}  // namespace elastic::internal
