#pragma once

#include <cstdint>

#include "rendezvous/base/ids.h"

namespace elastic::internal {

// The commit word (P5), one per worker, 64 bits in shared memory:
//
//   63           32 31                 2      1          0
//   [ generation  ] [ commits in it    ] [committing] [fenced]
//
// The worker sets `committing` by compare-exchange (which fails if the word is fenced), copies,
// then compare-exchanges to the next number, or back to this one after taking a state that it
// lacked; the agent fences by fetch-or. Once fenced and not
// committing, the word is final for its generation. 0 means: in no generation.
struct CommitWord {
  GenerationNumber generation;
  uint32_t commits = 0;
  bool committing = false;
  bool fenced = false;

  static constexpr uint64_t kFencedBit = 1;
  static constexpr uint64_t kCommittingBit = 2;
  static constexpr uint32_t kCommitsMax = (1u << 30) - 1;

  constexpr uint64_t Pack() const {
    return (uint64_t{generation.value} << 32) | (uint64_t{commits} << 2) |
           (committing ? kCommittingBit : 0) | (fenced ? kFencedBit : 0);
  }
  static constexpr CommitWord Unpack(uint64_t bits) {
    return {GenerationNumber{static_cast<uint32_t>(bits >> 32)},
            static_cast<uint32_t>(bits >> 2) & kCommitsMax, (bits & kCommittingBit) != 0,
            (bits & kFencedBit) != 0};
  }

  // Read after fencing, such a word cannot change any more (P5).
  constexpr bool final_after_fence() const { return fenced && !committing; }
  friend bool operator==(const CommitWord&, const CommitWord&) = default;
};

}  // namespace elastic::internal
