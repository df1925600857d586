#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

namespace elastic::internal {

// How far a rank has committed: commits in the present generation, and the label of the newest
// committed step. Ordered by both, then by rank.
struct CommitPoint {
  uint32_t commits = 0;
  uint32_t rank = 0;
  uint64_t step = 0;

  bool SameCommit(const CommitPoint& other) const {
    return commits == other.commits && step == other.step;
  }
  friend bool operator==(const CommitPoint&, const CommitPoint&) = default;
  friend bool operator<(const CommitPoint& a, const CommitPoint& b) {
    return std::tie(a.commits, a.step, a.rank) < std::tie(b.commits, b.step, b.rank);
  }
};

// Who wants the job to stop; bits.
inline constexpr uint32_t kStopByProgram = 1;   // elastic_request_stop on some rank
inline constexpr uint32_t kStopByOperator = 2;  // a signal to elastic-run

// What every world collective carries beside its data, and every commit that follows one goes by
// (P6, P25): each rank contributes its own values, all get the merge over all ranks. The merge is
// commutative, associative and idempotent, so that a schedule may bring a value any number of times
// and in any order.
//
// On the wire: 48 bytes, the members in their order, little-endian.
struct Agreement {
  uint32_t smallest_prepared = 0;  // of the prepared successor that a rank contributes; 0: none
  uint32_t largest_prepared = 0;
  uint32_t stop = 0;  // kStopBy*
  uint32_t reserved = 0;
  CommitPoint least;
  CommitPoint most;

  // What one rank contributes.
  static Agreement Of(uint32_t prepared, uint32_t stop, const CommitPoint& point) {
    return {.smallest_prepared = prepared,
            .largest_prepared = prepared,
            .stop = stop,
            .reserved = 0,
            .least = point,
            .most = point};
  }

  friend bool operator==(const Agreement&, const Agreement&) = default;
};
inline constexpr size_t kAgreementBytes = 48;
static_assert(sizeof(Agreement) == kAgreementBytes);

Agreement Merge(const Agreement& a, const Agreement& b);

// Of two points that are not the same commit: `rank 0 has committed step 2 (its 2nd commit in this
// generation), rank 1 step 1 (its 1st): ...`, with the remedy.
std::string DescribeUnequal(const CommitPoint& a, const CommitPoint& b);

}  // namespace elastic::internal
