#include "collectives/schedule/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "rendezvous/base/rng.h"

using namespace elastic::internal;

namespace {

using Bytes = std::vector<uint8_t>;

// Neither commutative nor associative, so that a wrong order shows.
uint8_t Mix(uint8_t received, uint8_t own) { return static_cast<uint8_t>(received * 3 + own + 1); }
uint8_t Smallest(uint8_t received, uint8_t own) { return std::min(received, own); }

struct RankState {
  Plan plan;
  Bytes input, output, scratch;
  std::vector<size_t> sent, consumed;  // per stream, header not counted
  std::vector<bool> header_sent, header_came;
  bool in_place = false;  // input is output
  const Bytes& Input() const { return in_place ? output : input; }
};

// Interprets the plans of all ranks in memory, a byte at a time, in a random order.
class Simulation {
 public:
  using Reduction = uint8_t (*)(uint8_t, uint8_t);
  Simulation(std::vector<RankState> ranks, Reduction reduction, uint64_t seed)
      : ranks_(std::move(ranks)), reduction_(reduction), rng_(seed) {
    for (RankState& rank : ranks_) {
      rank.sent.assign(rank.plan.outbound.size(), 0);
      rank.header_sent.assign(rank.plan.outbound.size(), false);
      rank.consumed.assign(rank.plan.inbound.size(), 0);
      rank.header_came.assign(rank.plan.inbound.size(), false);
    }
  }

  // False if some stream could not be finished.
  bool Run() {
    size_t idle = 0;
    while (idle < 64) {
      bool moved = false;
      for (size_t tries = 0; tries < ranks_.size() * 4; ++tries) {
        moved |= Step(static_cast<int>(rng_.Below(ranks_.size())), rng_.Chance(1, 2));
      }
      idle = moved ? 0 : idle + 1;
    }
    return AllDone();
  }
  const RankState& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }

 private:
  template <class Stream>
  static size_t Total(const Plan& plan, const Stream& stream) {
    size_t total = 0;
    for (const auto& piece : plan.Pieces(stream)) {
      total += piece.bytes;
    }
    return total;
  }
  bool OutDone(const RankState& rank, size_t i) const {
    return rank.header_sent[i] && rank.sent[i] == Total(rank.plan, rank.plan.outbound[i]);
  }
  bool InDone(const RankState& rank, size_t i) const {
    return rank.header_came[i] && rank.consumed[i] == Total(rank.plan, rank.plan.inbound[i]);
  }
  bool AllDone() const {
    for (const RankState& rank : ranks_) {
      for (size_t i = 0; i < rank.sent.size(); ++i) {
        if (!OutDone(rank, i)) return false;
      }
      for (size_t i = 0; i < rank.consumed.size(); ++i) {
        if (!InDone(rank, i)) return false;
      }
    }
    return std::ranges::all_of(wires_, [](const auto& wire) { return wire.second.empty(); });
  }

  bool Step(int rank, bool send) {
    RankState& state = ranks_[static_cast<size_t>(rank)];
    const size_t streams = send ? state.sent.size() : state.consumed.size();
    if (streams == 0) {
      return false;
    }
    const auto i = static_cast<size_t>(rng_.Below(streams));
    return send ? SendByte(rank, state, i) : TakeByte(rank, state, i);
  }

  bool SendByte(int rank, RankState& state, size_t i) {
    const Outbound& stream = state.plan.outbound[i];
    for (int k = 0; k < stream.after_inbounds; ++k) {
      if (!InDone(state, static_cast<size_t>(k))) return false;
    }
    auto& wire = wires_[{rank, stream.peer}];
    if (!state.header_sent[i]) {
      state.header_sent[i] = true;
      wire.push_back(0);
      return true;
    }
    size_t position = state.sent[i];
    for (const SendPiece& piece : state.plan.Pieces(stream)) {
      if (position >= piece.bytes) {
        position -= piece.bytes;
        continue;
      }
      if (piece.follows >= 0 &&
          state.consumed[static_cast<size_t>(piece.follows)] <= piece.follows_offset + position) {
        return false;
      }
      const Bytes& from = piece.buffer == Buffer::kInput    ? state.Input()
                          : piece.buffer == Buffer::kOutput ? state.output
                                                            : state.scratch;
      wire.push_back(from.at(piece.offset + position));
      ++state.sent[i];
      return true;
    }
    return false;
  }

  bool TakeByte(int rank, RankState& state, size_t i) {
    const Inbound& stream = state.plan.inbound[i];
    for (int k = 0; k < stream.after_outbounds; ++k) {
      if (!OutDone(state, static_cast<size_t>(k))) return false;
    }
    auto& wire = wires_[{stream.peer, rank}];
    if (wire.empty() || InDone(state, i)) {
      return false;
    }
    const uint8_t byte = wire.front();
    wire.pop_front();
    if (!state.header_came[i]) {
      state.header_came[i] = true;
      return true;
    }
    size_t position = state.consumed[i]++;
    for (const ReceivePiece& piece : state.plan.Pieces(stream)) {
      if (position >= piece.bytes) {
        position -= piece.bytes;
        continue;
      }
      const size_t at = piece.offset + position;
      switch (piece.take) {
        case Take::kStore: state.output.at(at) = byte; break;
        case Take::kStage: state.scratch.at(at) = byte; break;
        case Take::kReduce: state.output.at(at) = reduction_(byte, state.Input().at(at)); break;
        // Marks completion: exactly one rank may finish an element, exactly once.
        case Take::kReduceAndFinish:
          state.output.at(at) = static_cast<uint8_t>(reduction_(byte, state.Input().at(at)) ^ 0x55);
          break;
      }
      return true;
    }
    return false;
  }

  std::vector<RankState> ranks_;
  const Reduction reduction_;
  Rng rng_;
  std::map<std::pair<int, int>, std::deque<uint8_t>> wires_;
};

Bytes Content(int rank, size_t count) {
  Bytes bytes;
  for (size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<uint8_t>(static_cast<size_t>(rank) * 37 + i * 11 + 5));
  }
  return bytes;
}

// Ranks whose plans are made by `make(position, state)`.
template <class Make>
std::vector<RankState> Ranks(int size, Make make) {
  std::vector<RankState> ranks(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    make(Position{.rank = rank, .size = size}, ranks[static_cast<size_t>(rank)]);
  }
  return ranks;
}

}  // namespace

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
      sent += piece.bytes;
    }
    REQUIRE(sent == 2 * static_cast<size_t>(size - 1) * 6 * 8);
  }
}

TEST_CASE("RingSegmentsNeverCutAnElement") {
  for (int size = 2; size <= 9; ++size) {
    Plan plan;
    PlanRingAllReduce({.rank = 0, .size = size}, {.count = 31, .element_bytes = 8}, plan);
    for (const ReceivePiece& piece : plan.receive_pieces) {
      REQUIRE(piece.offset % 8 == 0);
      REQUIRE(piece.bytes % 8 == 0);
    }
  }
}

TEST_CASE("DirectExchangeBringsEverybodysBytesToEverybody") {
  for (int size = 1; size <= 9; ++size) {
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
  for (int size = 2; size <= 9; ++size) {
    for (const size_t bytes : {0, 1, 6}) {
      CAPTURE(ring, size, bytes);
      Simulation simulation(Ranks(size,
                                  [&](Position at, RankState& rank) {
                                    rank.output.resize(bytes * static_cast<size_t>(size));
                                    std::ranges::copy(
                                        Content(at.rank, bytes),
                                        rank.output.begin() + static_cast<long>(bytes) * at.rank);
                                    ring ? PlanRingAllGather(at, bytes, rank.plan)
                                         : PlanDirectAllGather(at, bytes, rank.plan);
                                  }),
                            Mix, bytes);
      REQUIRE(simulation.Run());
      Bytes expected;
      for (int rank = 0; rank < size; ++rank) {
        std::ranges::copy(Content(rank, bytes), std::back_inserter(expected));
      }
      for (int rank = 0; rank < size; ++rank) {
        REQUIRE(simulation.at(rank).output == expected);
      }
    }
  }
}

TEST_CASE("DisseminationGivesEveryRankTheMinimumOfAll") {
  for (int size = 1; size <= 9; ++size) {
    for (int lowest = 0; lowest < size; ++lowest) {
      CAPTURE(size, lowest);
      Simulation simulation(
          Ranks(size,
                [&](Position at, RankState& rank) {
                  rank.output = {static_cast<uint8_t>(at.rank == lowest ? 3 : 100 + at.rank)};
                  rank.in_place = true;
                  PlanDissemination(at, 1, rank.plan);
                }),
          Smallest, static_cast<uint64_t>(lowest));
      REQUIRE(simulation.Run());
      for (int rank = 0; rank < size; ++rank) {
        REQUIRE(simulation.at(rank).output == Bytes{3});
      }
    }
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
        PlanDissemination(at, 8, dissemination);
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
