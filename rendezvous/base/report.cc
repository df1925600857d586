#include "rendezvous/base/report.h"

#include <cstring>

namespace elastic::internal {

std::string ToString(const ExitStatus& status) {
  if (!status.signalled) {
    return "exit code " + std::to_string(status.code);
  }
  const char* name = sigabbrev_np(status.code);
  return "signal " + std::to_string(status.code) +
         (name == nullptr ? "" : std::string(" (SIG") + name + ")");
}

}  // namespace elastic::internal
