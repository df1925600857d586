#pragma once

#include <span>
#include <string>

#include "launcher/cli/run_options.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// Reads elastic-run's arguments (argv without the program's name). A flag's value is the next word,
// or follows `=`. The command begins at the first word that is neither a flag nor a flag's value,
// or after `--`; nothing behind that point is looked at. Of a flag given twice the last one holds,
// so that a wrapper script can append. Values are read but not weighed: MakeJobSpec does that.
// Errors: INVALID_ARGUMENT for an unknown flag, a missing value or one of the wrong type.
StatusOr<RunOptions> ParseArguments(std::span<const std::string> arguments);

}  // namespace elastic::internal
