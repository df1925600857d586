#include "rendezvous/base/severity_names.h"

namespace elastic::internal {

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kDebug: return "debug";
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "unknown";
}

std::optional<Severity> ParseSeverity(std::string_view name) {
  for (const Severity severity :
       {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError}) {
    if (name == SeverityName(severity)) {
      return severity;
    }
  }
  return std::nullopt;
}

}  // namespace elastic::internal
