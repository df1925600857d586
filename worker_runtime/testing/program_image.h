#pragma once

#include <cstdint>

#include "worker_runtime/elastic_testing.h"

namespace elastic::testing {

// What a Cluster tells its ranks: the function by its place in the program's file, and where to
// write what they say.
inline constexpr char kFunctionVariable[] = "ELASTIC_TESTING_FUNCTION";
inline constexpr char kPipeVariable[] = "ELASTIC_TESTING_PIPE";
// The first line of a rank, followed by its pid.
inline constexpr char kHello[] = "\x01pid ";

// Where the program (not its libraries) lies in memory: `base` changes from start to start, places
// relative to it do not.
struct ProgramImage {
  uintptr_t base = 0;
  uintptr_t code_begin = 0;  // of its executable segment
  uintptr_t code_end = 0;
};
ProgramImage Image();

}  // namespace elastic::testing
