#pragma once

#include <string>

namespace elastic::internal {

// The whole text of --help: usage, flags by group with defaults and units, exit codes, an example.
std::string HelpText();
std::string VersionText();  // `elastic-run 0.1.0`

}  // namespace elastic::internal
