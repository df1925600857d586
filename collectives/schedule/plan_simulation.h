#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "collectives/schedule/plan.h"
#include "rendezvous/base/agreement.h"
#include "rendezvous/base/rng.h"

// Interprets plans in memory, for the tests of the schedules.
namespace elastic::internal::schedule_testing {

using Bytes = std::vector<uint8_t>;

// Neither commutative nor associative, so that a wrong order shows.
inline uint8_t Mix(uint8_t received, uint8_t own) {
  return static_cast<uint8_t>(received * 3 + own + 1);
}

using Ranks32 = uint32_t;  // set of ranks: what stands for an agreement here

struct RankState {
  Plan plan;
  Bytes input, output, scratch;
  // Per stream, header not counted: bytes that left, that came, and of those the data.
  std::vector<size_t> sent, came, consumed;
  std::vector<bool> header_sent, header_came;
  std::vector<Ranks32> slots;
  std::vector<size_t> merged;
  std::vector<Ranks32> coming;  // first byte of the agreement that comes
};

// Interprets the plans of all ranks in memory, a byte at a time, in a random order. An agreement is
// a set of ranks, which every byte of it carries whole.
class Simulation {
 public:
  using Reduction = uint8_t (*)(uint8_t, uint8_t);
  Simulation(std::vector<RankState> ranks, Reduction reduction, uint64_t seed)
      : ranks_(std::move(ranks)), reduction_(reduction), rng_(seed) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      RankState& rank = ranks_[r];
      rank.sent.assign(rank.plan.outbound.size(), 0);
      rank.header_sent.assign(rank.plan.outbound.size(), false);
      rank.came.assign(rank.plan.inbound.size(), 0);
      rank.consumed = rank.merged = rank.came;
      rank.coming.assign(rank.plan.inbound.size(), 0);
      rank.header_came.assign(rank.plan.inbound.size(), false);
      rank.slots.assign(static_cast<size_t>(rank.plan.slots), Ranks32{1} << r);
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
  // Of a world collective: every rank has what all contributed.
  bool AllAgree() const {
    const Ranks32 all = (Ranks32{1} << ranks_.size()) - 1;
    return std::ranges::all_of(ranks_, [&](const RankState& rank) {
      return rank.slots.at(static_cast<size_t>(rank.plan.result)) == all;
    });
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
    return rank.header_came[i] && rank.came[i] == Total(rank.plan, rank.plan.inbound[i]);
  }
  bool AllDone() const {
    for (const RankState& rank : ranks_) {
      for (size_t i = 0; i < rank.sent.size(); ++i) {
        if (!OutDone(rank, i)) return false;
      }
      for (size_t i = 0; i < rank.came.size(); ++i) {
        if (!InDone(rank, i)) return false;
      }
    }
    return std::ranges::all_of(wires_, [](const auto& wire) { return wire.second.empty(); });
  }

  bool Step(int rank, bool send) {
    RankState& state = ranks_[static_cast<size_t>(rank)];
    const size_t streams = send ? state.sent.size() : state.came.size();
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
      wire.push_back(stream.slot < 0 ? 0 : state.slots.at(static_cast<size_t>(stream.slot)));
      return true;
    }
    size_t position = state.sent[i];
    for (const SendPiece& piece : state.plan.Pieces(stream)) {
      if (position >= piece.bytes) {
        position -= piece.bytes;
        continue;
      }
      if (piece.buffer == Buffer::kAgreement) {
        if (state.merged[static_cast<size_t>(piece.follows)] < piece.follows_offset) {
          return false;
        }
        wire.push_back(state.slots.at(piece.offset));
        ++state.sent[i];
        return true;
      }
      if (piece.follows >= 0 &&
          state.consumed[static_cast<size_t>(piece.follows)] <= piece.follows_offset + position) {
        return false;
      }
      const Bytes& from = piece.buffer == Buffer::kInput    ? state.input
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
    const uint32_t element = wire.front();
    wire.pop_front();
    if (!state.header_came[i]) {
      state.header_came[i] = true;
      for (auto slot = static_cast<size_t>(stream.slot);
           stream.slot >= 0 && slot < state.slots.size(); ++slot) {
        state.slots[slot] |= element;
      }
      state.merged[i] += stream.slot >= 0 ? 1 : 0;
      return true;
    }
    Take(state, i, element);
    return true;
  }

  void Take(RankState& state, size_t i, uint32_t element) {
    size_t position = state.came[i]++;
    const auto byte = static_cast<uint8_t>(element);
    for (const ReceivePiece& piece : state.plan.Pieces(state.plan.inbound[i])) {
      if (position >= piece.bytes) {
        position -= piece.bytes;
        continue;
      }
      const size_t at = piece.offset + position;
      state.consumed[i] += piece.take == Take::kMerge ? 0 : 1;
      switch (piece.take) {
        case Take::kStore: state.output.at(at) = byte; break;
        case Take::kStage: state.scratch.at(at) = byte; break;
        case Take::kReduce: state.output.at(at) = reduction_(byte, state.input.at(at)); break;
        // Marks completion: exactly one rank may finish an element, exactly once.
        case Take::kReduceAndFinish:
          state.output.at(at) = static_cast<uint8_t>(reduction_(byte, state.input.at(at)) ^ 0x55);
          break;
        case Take::kMerge: MergeByte(state, i, {piece.offset, position}, element); break;
      }
      return;
    }
  }

  struct AgreementByte {
    size_t slot = 0;
    size_t position = 0;
  };
  void MergeByte(RankState& state, size_t i, AgreementByte at, Ranks32 element) {
    state.coming[i] = at.position == 0 ? element : state.coming[i];
    REQUIRE(state.coming[i] == element);  // it did not change while it was sent
    if (at.position + 1 == kAgreementBytes) {
      state.slots.at(at.slot) = state.slots.at(at.slot - 1) | element;
      ++state.merged[i];
    }
  }

  std::vector<RankState> ranks_;
  const Reduction reduction_;
  Rng rng_;
  std::map<std::pair<int, int>, std::deque<uint32_t>> wires_;
};

inline Bytes Content(int rank, size_t count) {
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

}  // namespace elastic::internal::schedule_testing
