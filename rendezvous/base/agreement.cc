#include "rendezvous/base/agreement.h"

#include <algorithm>

namespace elastic::internal {

namespace {

std::string Ordinal(uint32_t number) {
  const uint32_t last = number % 10;
  const bool teen = number / 10 % 10 == 1;
  return std::to_string(number) + (teen || last == 0 || last > 3 ? "th"
                                   : last == 1                   ? "st"
                                   : last == 2                   ? "nd"
                                                                 : "rd");
}

}  // namespace

Agreement Merge(const Agreement& a, const Agreement& b) {
  return {.smallest_prepared = std::min(a.smallest_prepared, b.smallest_prepared),
          .largest_prepared = std::max(a.largest_prepared, b.largest_prepared),
          .stop = a.stop | b.stop,
          .reserved = 0,
          .least = std::min(a.least, b.least),
          .most = std::max(a.most, b.most)};
}

std::string DescribeUnequal(const CommitPoint& a, const CommitPoint& b) {
  const auto& [less, more] = std::minmax(a, b);
  return "rank " + std::to_string(more.rank) + " has committed step " + std::to_string(more.step) +
         " (its " + Ordinal(more.commits) + " commit in this generation), rank " +
         std::to_string(less.rank) + (less.commits == 0 ? " none since step " : " step ") +
         std::to_string(less.step) +
         (less.commits == 0 ? "" : " (its " + Ordinal(less.commits) + ")") +
         ": all ranks must call elastic_commit equally often with the same step";
}

}  // namespace elastic::internal
