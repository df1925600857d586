#pragma once

#include <optional>
#include <string>

#include "rendezvous/base/log.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// The command line of elastic-rendezvous.
struct RendezvousFlags {
  bool standing = false;  // no job of its own
  JobSpec job;            // else
  std::string agent_address;
  std::string status_address;
  Severity log_level = Severity::kInfo;
};
struct ParsedFlags {
  std::optional<RendezvousFlags> flags;  // absent: everything is said, leave with exit_code
  int exit_code = 0;
};

// Prints help, version, or one line that names the wrong value and the remedy (exit code 2).
ParsedFlags ParseRendezvousFlags(int argc, const char* const* argv);

}  // namespace elastic::internal
