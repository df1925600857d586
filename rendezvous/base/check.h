#pragma once

namespace elastic::internal {

// Prints the failed condition with its place and ends the process.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace elastic::internal

// A programmer's error, on in every build. Never reachable from the network, the user or a file.
#define ELASTIC_CHECK(condition) \
  (static_cast<bool>(condition)  \
       ? static_cast<void>(0)    \
       : ::elastic::internal::CheckFailed(#condition, __FILE__, __LINE__))
