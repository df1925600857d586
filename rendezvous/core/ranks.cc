#include "rendezvous/core/ranks.h"

#include <algorithm>
#include <tuple>

namespace elastic::internal {

std::vector<RosterEntry> AssignRanks(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    const bool newcomer_a = a.previous_rank < 0, newcomer_b = b.previous_rank < 0;
    return std::tie(newcomer_a, a.previous_rank, a.host_order, a.slot, a.incarnation) <
           std::tie(newcomer_b, b.previous_rank, b.host_order, b.slot, b.incarnation);
  });
  std::vector<RosterEntry> entries;
  entries.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    entries.push_back({.role = Role::kWorker,
                       .incarnation = candidate.incarnation,
                       .rank = static_cast<int32_t>(entries.size()),
                       .previous_rank = candidate.previous_rank,
                       .host = std::move(candidate.host),
                       .slot = candidate.slot,
                       .data = std::move(candidate.data),
                       .holds_resume = candidate.holds_resume});
  }
  return entries;
}

}  // namespace elastic::internal
