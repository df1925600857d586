#include "collectives/schedule/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "collectives/schedule/plan_simulation.h"

using namespace elastic::internal;
using namespace elastic::internal::schedule_testing;

TEST_CASE("SegmentsAreContiguousAndDifferByAtMostOne") {
  for (int parts = 1; parts <= 9; ++parts) {
    for (size_t count = 0; count <= 30; ++count) {
      size_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Segment segment = SegmentOf(count, parts, i);
        REQUIRE(segment.first == next);
        REQUIRE(segment.count >= count / static_cast<size_t>(parts));
        REQUIRE(segment.count <= count / static_cast<size_t>(parts) + 1);
        next += segment.count;
      }
      REQUIRE(next == count);
    }
  }
}

TEST_CASE("RingAllReduceReducesEverySegmentOnceAroundTheRingFromItsOwnRank") {
  for (int size = 2; size <= 9; ++size) {
    for (const size_t count : {0, 1, 2, 5, 9, 20}) {
      CAPTURE(size, count);
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.input = Content(at.rank, count);
                                    rank.output.resize(count);
                                    PlanRingAllReduce(at, {.count = count, .element_bytes = 1},
                                                      rank.plan);
                                  }),
                            Mix, count + static_cast<size_t>(size));
      REQUIRE(simulation.Run());
      REQUIRE(simulation.AllAgree());
      for (int segment = 0; segment < size; ++segment) {
        const Segment part = SegmentOf(count, size, segment);
        for (size_t i = part.first; i < part.first + part.count; ++i) {
          uint8_t expected = simulation.at(segment).input[i];
          for (int hop = 1; hop < size; ++hop) {
            expected = Mix(expected, simulation.at((segment + hop) % size).input[i]);
          }
          expected = static_cast<uint8_t>(expected ^ 0x55);
          for (int rank = 0; rank < size; ++rank) {
            REQUIRE(simulation.at(rank).output[i] == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("RingAllReduceMovesTheLeastPossibleBytes") {
  for (int size = 2; size <= 9; ++size) {
    const size_t count = static_cast<size_t>(size) * 6;
    Plan plan;
    PlanRingAllReduce({.rank = size - 1, .size = size}, {.count = count, .element_bytes = 8}, plan);
    size_t sent = 0;
    for (const SendPiece& piece : plan.send_pieces) {
      sent += piece.buffer == Buffer::kAgreement ? 0 : piece.bytes;
    }
    REQUIRE(sent == 2 * static_cast<size_t>(size - 1) * 6 * 8);
  }
}

TEST_CASE("RingSegmentsNeverCutAnElement") {
  for (int size = 2; size <= 9; ++size) {
    Plan plan;
    PlanRingAllReduce({.rank = 0, .size = size}, {.count = 31, .element_bytes = 8}, plan);
    for (const ReceivePiece& piece : plan.receive_pieces) {
      REQUIRE((piece.take == Take::kMerge || piece.offset % 8 == 0));
      REQUIRE(piece.bytes % 8 == 0);
    }
  }
}

TEST_CASE("DirectExchangeBringsEverybodysBytesToEverybody") {
  for (int size = 2; size <= 9; ++size) {
    for (const size_t bytes : {0, 1, 7}) {
      CAPTURE(size, bytes);
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.scratch.resize(bytes * static_cast<size_t>(size));
                                    std::ranges::copy(
                                        Content(at.rank, bytes),
                                        rank.scratch.begin() + static_cast<long>(bytes) * at.rank);
                                    PlanDirectExchange(at, bytes, rank.plan);
                                  }),
                            Mix, 3);
      REQUIRE(simulation.Run());
      REQUIRE(simulation.AllAgree());
      Bytes expected;
      for (int rank = 0; rank < size; ++rank) {
        std::ranges::copy(Content(rank, bytes), std::back_inserter(expected));
      }
      for (int rank = 0; rank < size; ++rank) {
        REQUIRE(simulation.at(rank).scratch == expected);
      }
    }
  }
}

TEST_CASE("BroadcastsBringTheRootsBytesToAll") {
  const bool ring = GENERATE(true, false);
  for (int size = 1; size <= 9; ++size) {
    for (int root = 0; root < size; ++root) {
      CAPTURE(ring, size, root);
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.output = Content(at.rank, 13);
                                    const BroadcastSize what{.root = root, .bytes = 13};
                                    ring ? PlanRingBroadcast(at, what, rank.plan)
                                         : PlanFlatBroadcast(at, what, rank.plan);
                                  }),
                            Mix, static_cast<uint64_t>(root));
      REQUIRE(simulation.Run());
      for (int rank = 0; rank < size; ++rank) {
        REQUIRE(simulation.at(rank).output == Content(root, 13));
      }
    }
  }
}

TEST_CASE("AllGathersBringEveryPartToItsPlaceOnAllRanks") {
  const bool ring = GENERATE(true, false);
  const int shape = GENERATE(0, 1, 2, 3, 4);
  for (int size = 2; size <= 9; ++size) {
    CAPTURE(ring, size, shape);
    std::vector<size_t> bytes_of;
    for (int rank = 0; rank < size; ++rank) {  // none, equal, rising, some empty, only the last
      const auto r = static_cast<size_t>(rank);
      bytes_of.push_back(shape == 0   ? 0
                         : shape == 1 ? 6
                         : shape == 2 ? r + 1
                         : shape == 3 ? (r % 3) * 5
                                      : (rank == size - 1 ? 11 : 0));
    }
    Bytes expected;
    for (int rank = 0; rank < size; ++rank) {
      std::ranges::copy(Content(rank, bytes_of[static_cast<size_t>(rank)]),
                        std::back_inserter(expected));
    }
    Simulation simulation(
        Ranks(size,
              [&](Position at, RankState& rank) {
                rank.output.resize(expected.size());
                const auto offset =
                    std::accumulate(bytes_of.begin(), bytes_of.begin() + at.rank, size_t{0});
                std::ranges::copy(Content(at.rank, bytes_of[static_cast<size_t>(at.rank)]),
                                  rank.output.begin() + static_cast<long>(offset));
                ring ? PlanRingAllGather(at, bytes_of, rank.plan)
                     : PlanDirectAllGather(at, bytes_of, rank.plan);
              }),
        Mix, static_cast<uint64_t>(shape));
    REQUIRE(simulation.Run());
    REQUIRE(simulation.AllAgree());
    for (int rank = 0; rank < size; ++rank) {
      REQUIRE(simulation.at(rank).output == expected);
    }
  }
}

TEST_CASE("RingReduceScatterReducesEachPartOnceAroundTheRingAndEndsAtItsRank") {
  for (int size = 2; size <= 9; ++size) {
    for (const size_t count : {0, 1, 5}) {
      CAPTURE(size, count);
      const size_t all = count * static_cast<size_t>(size);
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.input = Content(at.rank, all);
                                    rank.output.resize(all);
                                    PlanRingReduceScatter(at, {.count = count, .element_bytes = 1},
                                                          rank.plan);
                                  }),
                            Mix, count);
      REQUIRE(simulation.Run());
      REQUIRE(simulation.AllAgree());
      for (int part = 0; part < size; ++part) {
        for (size_t i = static_cast<size_t>(part) * count;
             i < static_cast<size_t>(part + 1) * count; ++i) {
          uint8_t expected = simulation.at((part + 1) % size).input[i];
          for (int hop = 2; hop <= size; ++hop) {
            expected = Mix(expected, simulation.at((part + hop) % size).input[i]);
          }
          REQUIRE(simulation.at(part).output[i] == (expected ^ 0x55));
        }
      }
    }
  }
}

TEST_CASE("DirectReduceScatterBringsEachRankTheContributionsToItsPart") {
  for (int size = 2; size <= 9; ++size) {
    for (const size_t bytes : {0, 1, 5}) {
      CAPTURE(size, bytes);
      const size_t all = bytes * static_cast<size_t>(size);
      const auto part = [&](int of, int rank) {
        const Bytes content = Content(of, all);
        const auto first = content.begin() + static_cast<long>(bytes) * rank;
        return Bytes(first, first + static_cast<long>(bytes));
      };
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.input = Content(at.rank, all);
                                    rank.scratch.resize(all);
                                    std::ranges::copy(
                                        part(at.rank, at.rank),
                                        rank.scratch.begin() + static_cast<long>(bytes) * at.rank);
                                    PlanDirectReduceScatter(at, bytes, rank.plan);
                                  }),
                            Mix, bytes);
      REQUIRE(simulation.Run());
      REQUIRE(simulation.AllAgree());
      for (int rank = 0; rank < size; ++rank) {
        Bytes expected;
        for (int of = 0; of < size; ++of) {
          std::ranges::copy(part(of, rank), std::back_inserter(expected));
        }
        REQUIRE(simulation.at(rank).scratch == expected);
      }
    }
  }
}

TEST_CASE("DisseminationBringsWhatAllContributedToEveryRank") {
  for (int size = 2; size <= 31; ++size) {
    CAPTURE(size);
    Simulation simulation(
        Ranks(size, [](Position at, RankState& rank) { PlanDissemination(at, rank.plan); }), Mix,
        static_cast<uint64_t>(size));
    REQUIRE(simulation.Run());
    REQUIRE(simulation.AllAgree());
  }
}

TEST_CASE("EdgesAreSymmetricAndCoverEveryPlansPeers") {
  for (int size = 1; size <= 40; ++size) {
    for (const int full_mesh_max : {0, 16}) {
      CAPTURE(size, full_mesh_max);
      for (int rank = 0; rank < size; ++rank) {
        const Position at{.rank = rank, .size = size};
        const std::vector<int> peers = EdgePeers(at, full_mesh_max);
        const std::set<int> set(peers.begin(), peers.end());
        REQUIRE(set.size() == peers.size());
        REQUIRE_FALSE(set.contains(rank));
        for (const int peer : peers) {
          const std::vector<int> back = EdgePeers({.rank = peer, .size = size}, full_mesh_max);
          REQUIRE(std::ranges::binary_search(back, rank));
        }
        if (size < 2) {
          continue;
        }
        Plan ring, dissemination;
        PlanRingAllReduce(at, {.count = 1, .element_bytes = 4}, ring);
        PlanDissemination(at, dissemination);
        for (const Plan* plan : {&ring, &dissemination}) {
          for (const Outbound& stream : plan->outbound) {
            REQUIRE(set.contains(stream.peer));
          }
          for (const Inbound& stream : plan->inbound) {
            REQUIRE(set.contains(stream.peer));
          }
        }
      }
    }
  }
}
