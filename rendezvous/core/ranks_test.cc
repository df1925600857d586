#include "rendezvous/core/ranks.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace elastic::internal {
namespace {

Candidate Make(uint32_t counter, int host, int32_t slot, int32_t previous_rank) {
  return {.incarnation = {{static_cast<uint32_t>(host + 1)}, counter},
          .host_order = host,
          .host = std::string(1, static_cast<char>('a' + host)),
          .slot = slot,
          .data = {"10.0.0.1", static_cast<uint16_t>(4000 + counter)},
          .previous_rank = previous_rank};
}

// The rule read literally: pick the next by scanning all that are left.
std::vector<WorkerIncarnation> Naive(std::vector<Candidate> left) {
  std::vector<WorkerIncarnation> order;
  const auto take = [&](auto better) {
    size_t best = 0;
    for (size_t i = 1; i < left.size(); ++i) {
      if (better(left[i], left[best])) {
        best = i;
      }
    }
    order.push_back(left[best].incarnation);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  };
  while (!left.empty()) {
    take([](const Candidate& a, const Candidate& b) {
      if ((a.previous_rank >= 0) != (b.previous_rank >= 0)) {
        return a.previous_rank >= 0;
      }
      if (a.previous_rank >= 0) {
        return a.previous_rank < b.previous_rank;
      }
      return a.host_order != b.host_order ? a.host_order < b.host_order : a.slot < b.slot;
    });
  }
  return order;
}

}  // namespace

TEST_CASE("The first generation is contiguous per host, in the order the hosts were named") {
  const auto entries =
      AssignRanks({Make(1, 1, 1, -1), Make(2, 0, 1, -1), Make(3, 1, 0, -1), Make(4, 0, 0, -1)});
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].host == "a");
  CHECK(entries[0].slot == 0);
  CHECK(entries[1].host == "a");
  CHECK(entries[2].host == "b");
  CHECK(entries[2].slot == 0);
  CHECK(entries[3].slot == 1);
}

TEST_CASE("Survivors keep their order and come first, whatever host newcomers are on") {
  const auto entries =
      AssignRanks({Make(9, 0, 0, -1), Make(2, 1, 0, 3), Make(3, 1, 1, 1), Make(8, 0, 1, -1)});
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].previous_rank == 1);
  CHECK(entries[1].previous_rank == 3);
  CHECK(entries[2].slot == 0);
  CHECK(entries[3].slot == 1);
  CHECK(entries[3].previous_rank == -1);
}

TEST_CASE("Ranks agree with the naive order for every mixture of up to five workers") {
  // Each worker is on host 0 or 1 and is a survivor or a newcomer: all 4^n choices, every rotation.
  int checked = 0;
  for (uint32_t count = 1; count <= 5; ++count) {
    for (uint32_t choice = 0; choice < (1u << (2 * count)); ++choice) {
      std::vector<Candidate> candidates;
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t kind = (choice >> (2 * i)) & 3;
        const auto previous = static_cast<int32_t>(count - i);  // reversed on purpose
        candidates.push_back(Make(i + 1, static_cast<int>(kind & 1), static_cast<int32_t>(i),
                                  (kind & 2) != 0 ? previous : -1));
      }
      for (uint32_t turn = 0; turn < count; ++turn) {
        std::rotate(candidates.begin(), candidates.begin() + 1, candidates.end());
        const auto entries = AssignRanks(candidates);
        const auto expected = Naive(candidates);
        REQUIRE(entries.size() == expected.size());
        for (size_t rank = 0; rank < entries.size(); ++rank) {
          REQUIRE(entries[rank].rank == static_cast<int32_t>(rank));
          REQUIRE(entries[rank].incarnation == expected[rank]);
        }
        ++checked;
      }
    }
  }
  CHECK(checked > 5000);
}

}  // namespace elastic::internal
