#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker_runtime/elastic_sampler.h"

namespace elastic::internal::testing {

// The oracle worker's training state: small enough to check by hand, and telling.
//
// `generation_of_step` is what makes the check exact: the state itself says in which generation
// each step of the surviving line was committed, so an abandoned line in the logs can't be taken
// for it.
struct OracleState {
  static constexpr size_t kStepsMax = 8192;
  int64_t weight = 0;   // sum over all committed samples of (id + 1)
  int64_t squares = 0;  // sum of (id + 1)^2
  uint64_t steps = 0;
  Cursor cursor;
  uint32_t generation_of_step[kStepsMax] = {};
};

// Fills what lies behind the header with a pattern of `step`, and checks it: a restored state that
// is torn or of another step shows.
inline void FillTail(std::span<uint64_t> tail, uint64_t step) {
  for (size_t i = 0; i < tail.size(); ++i) {
    tail[i] = step * 0x9E3779B97F4A7C15ull + i;
  }
}
inline bool TailIsOf(std::span<const uint64_t> tail, uint64_t step) {
  for (size_t i = 0; i < tail.size(); ++i) {
    if (tail[i] != step * 0x9E3779B97F4A7C15ull + i) {
      return false;
    }
  }
  return true;
}

}  // namespace elastic::internal::testing
