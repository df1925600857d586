#pragma once

#include <string>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// The file that execvp would run for `word`: the word itself if it has a slash, else the first
// executable file of that name in `path` (the value of PATH). Looked up before anything starts, so
// that a typing error is one line instead of N failed workers.
// Errors: NOT_FOUND when there is no such file; FAILED_PRECONDITION when there is one that is a
// folder or not executable.
StatusOr<std::string> FindCommand(const std::string& word, const std::string& path);

}  // namespace elastic::internal
