#include "collectives/schedule/schedule.h"

#include <algorithm>
#include <numeric>

#include "rendezvous/base/agreement.h"
#include "rendezvous/base/check.h"

namespace elastic::internal {

namespace {

int Wrap(int rank, int size) { return ((rank % size) + size) % size; }

struct ByteRange {
  size_t offset = 0;
  size_t bytes = 0;
};

ByteRange SegmentBytes(ElementCount elements, int parts, int index) {
  const Segment segment = SegmentOf(elements.count, parts, index);
  return {segment.first * elements.element_bytes, segment.count * elements.element_bytes};
}

}  // namespace

std::vector<int> EdgePeers(Position at, int full_mesh_max) {
  std::vector<int> peers;
  if (at.size <= full_mesh_max) {
    for (int peer = 0; peer < at.size; ++peer) {
      if (peer != at.rank) {
        peers.push_back(peer);
      }
    }
    return peers;
  }
  for (int distance = 1; distance < at.size; distance *= 2) {
    peers.push_back(Wrap(at.rank + distance, at.size));
    peers.push_back(Wrap(at.rank - distance, at.size));
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

Segment SegmentOf(size_t count, int parts, int index) {
  ELASTIC_CHECK(index >= 0 && index < parts);
  const auto whole = static_cast<size_t>(parts);
  const auto at = static_cast<size_t>(index);
  const size_t base = count / whole;
  const size_t longer = count % whole;
  return {.first = at * base + std::min(at, longer), .count = base + (at < longer ? 1 : 0)};
}

namespace {

// The values of a ring: slot k is the merge of k + 1 ranks' contributions. They travel between the
// parts of the data, so that they cost no hop of their own.
void BeginRingAgreement(Position at, Plan& plan) {
  plan.slots = at.size;
  plan.result = at.size - 1;
  plan.outbound.back().slot = 0;
  plan.inbound.back().slot = 1;
}

// Before the part that is forwarded in `step`, from 0.
void PassAgreement(Position at, int step, Plan& plan) {
  if (step + 2 >= at.size) {
    return;
  }
  const auto slot = static_cast<size_t>(step) + 1;
  plan.Add(SendPiece{.buffer = Buffer::kAgreement,
                     .offset = slot,
                     .bytes = kAgreementBytes,
                     .follows = 0,
                     .follows_offset = slot});
  plan.Add(ReceivePiece{.take = Take::kMerge, .offset = slot + 1, .bytes = kAgreementBytes});
}

// Everybody's value to everybody: slot 0 is sent, slot 1 gathers.
void CarryDirectly(Plan& plan) {
  plan.slots = 2;
  plan.result = 1;
  for (Outbound& stream : plan.outbound) {
    stream.slot = 0;
  }
  for (Inbound& stream : plan.inbound) {
    stream.slot = 1;
  }
}

size_t OffsetOf(std::span<const size_t> bytes_of, int rank) {
  return std::accumulate(bytes_of.begin(), bytes_of.begin() + rank, size_t{0});
}

}  // namespace

void PlanRingAllReduce(Position at, ElementCount elements, Plan& plan) {
  ELASTIC_CHECK(at.size >= 2);
  const int n = at.size;
  plan.Clear();
  plan.AddInbound(Wrap(at.rank - 1, n));
  plan.AddOutbound(Wrap(at.rank + 1, n));
  BeginRingAgreement(at, plan);
  const ByteRange own = SegmentBytes(elements, n, at.rank);
  plan.Add(SendPiece{.buffer = Buffer::kInput, .offset = own.offset, .bytes = own.bytes});
  size_t consumed = 0;
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const ByteRange part = SegmentBytes(elements, n, Wrap(at.rank - step - 1, n));
    const Take take = step < n - 2    ? Take::kReduce
                      : step == n - 2 ? Take::kReduceAndFinish
                                      : Take::kStore;
    plan.Add(ReceivePiece{.take = take, .offset = part.offset, .bytes = part.bytes});
    if (step < 2 * (n - 1) - 1) {
      PassAgreement(at, step, plan);
      plan.Add(SendPiece{.buffer = Buffer::kOutput,
                         .offset = part.offset,
                         .bytes = part.bytes,
                         .follows = 0,
                         .follows_offset = consumed});
    }
    consumed += part.bytes;
  }
}

void PlanDirectExchange(Position at, size_t bytes, Plan& plan) {
  plan.Clear();
  for (int distance = 1; distance < at.size; ++distance) {
    const int to = Wrap(at.rank + distance, at.size);
    const int from = Wrap(at.rank - distance, at.size);
    plan.AddOutbound(to);
    plan.Add(SendPiece{.buffer = Buffer::kScratch,
                       .offset = static_cast<size_t>(at.rank) * bytes,
                       .bytes = bytes});
    plan.AddInbound(from);
    plan.Add(ReceivePiece{
        .take = Take::kStage, .offset = static_cast<size_t>(from) * bytes, .bytes = bytes});
  }
  CarryDirectly(plan);
}

void PlanRingBroadcast(Position at, BroadcastSize what, Plan& plan) {
  ELASTIC_CHECK(what.root >= 0 && what.root < at.size);
  plan.Clear();
  const int distance = Wrap(at.rank - what.root, at.size);
  if (distance > 0) {
    plan.AddInbound(Wrap(at.rank - 1, at.size));
    plan.Add(ReceivePiece{.take = Take::kStore, .offset = 0, .bytes = what.bytes});
  }
  if (distance < at.size - 1) {
    plan.AddOutbound(Wrap(at.rank + 1, at.size));
    plan.Add(SendPiece{.buffer = Buffer::kOutput,
                       .offset = 0,
                       .bytes = what.bytes,
                       .follows = distance > 0 ? 0 : -1});
  }
}

void PlanFlatBroadcast(Position at, BroadcastSize what, Plan& plan) {
  ELASTIC_CHECK(what.root >= 0 && what.root < at.size);
  plan.Clear();
  if (at.rank != what.root) {
    plan.AddInbound(what.root);
    plan.Add(ReceivePiece{.take = Take::kStore, .offset = 0, .bytes = what.bytes});
    return;
  }
  for (int distance = 1; distance < at.size; ++distance) {
    plan.AddOutbound(Wrap(at.rank + distance, at.size));
    plan.Add(SendPiece{.buffer = Buffer::kOutput, .offset = 0, .bytes = what.bytes});
  }
}

void PlanRingAllGather(Position at, std::span<const size_t> bytes_of, Plan& plan) {
  ELASTIC_CHECK(at.size >= 2);
  ELASTIC_CHECK(bytes_of.size() == static_cast<size_t>(at.size));
  plan.Clear();
  plan.AddInbound(Wrap(at.rank - 1, at.size));
  plan.AddOutbound(Wrap(at.rank + 1, at.size));
  BeginRingAgreement(at, plan);
  plan.Add(SendPiece{.buffer = Buffer::kOutput,
                     .offset = OffsetOf(bytes_of, at.rank),
                     .bytes = bytes_of[static_cast<size_t>(at.rank)]});
  size_t consumed = 0;
  for (int step = 0; step < at.size - 1; ++step) {
    const int from = Wrap(at.rank - step - 1, at.size);
    const size_t offset = OffsetOf(bytes_of, from);
    const size_t bytes = bytes_of[static_cast<size_t>(from)];
    plan.Add(ReceivePiece{.take = Take::kStore, .offset = offset, .bytes = bytes});
    if (step < at.size - 2) {
      PassAgreement(at, step, plan);
      plan.Add(SendPiece{.buffer = Buffer::kOutput,
                         .offset = offset,
                         .bytes = bytes,
                         .follows = 0,
                         .follows_offset = consumed});
    }
    consumed += bytes;
  }
}

void PlanDirectAllGather(Position at, std::span<const size_t> bytes_of, Plan& plan) {
  ELASTIC_CHECK(bytes_of.size() == static_cast<size_t>(at.size));
  plan.Clear();
  for (int distance = 1; distance < at.size; ++distance) {
    const int from = Wrap(at.rank - distance, at.size);
    plan.AddOutbound(Wrap(at.rank + distance, at.size));
    plan.Add(SendPiece{.buffer = Buffer::kOutput,
                       .offset = OffsetOf(bytes_of, at.rank),
                       .bytes = bytes_of[static_cast<size_t>(at.rank)]});
    plan.AddInbound(from);
    plan.Add(ReceivePiece{.take = Take::kStore,
                          .offset = OffsetOf(bytes_of, from),
                          .bytes = bytes_of[static_cast<size_t>(from)]});
  }
  CarryDirectly(plan);
}

void PlanRingReduceScatter(Position at, ElementCount elements, Plan& plan) {
  ELASTIC_CHECK(at.size >= 2);
  const int n = at.size;
  const size_t bytes = elements.count * elements.element_bytes;
  plan.Clear();
  plan.AddInbound(Wrap(at.rank - 1, n));
  plan.AddOutbound(Wrap(at.rank + 1, n));
  BeginRingAgreement(at, plan);
  plan.Add(SendPiece{.buffer = Buffer::kInput,
                     .offset = static_cast<size_t>(Wrap(at.rank - 1, n)) * bytes,
                     .bytes = bytes});
  for (int step = 0; step < n - 1; ++step) {
    const size_t offset = static_cast<size_t>(Wrap(at.rank - step - 2, n)) * bytes;
    plan.Add(ReceivePiece{.take = step < n - 2 ? Take::kReduce : Take::kReduceAndFinish,
                          .offset = offset,
                          .bytes = bytes});
    if (step < n - 2) {
      PassAgreement(at, step, plan);
      plan.Add(SendPiece{.buffer = Buffer::kOutput,
                         .offset = offset,
                         .bytes = bytes,
                         .follows = 0,
                         .follows_offset = static_cast<size_t>(step) * bytes});
    }
  }
}

void PlanDirectReduceScatter(Position at, size_t bytes, Plan& plan) {
  plan.Clear();
  for (int distance = 1; distance < at.size; ++distance) {
    const int to = Wrap(at.rank + distance, at.size);
    const int from = Wrap(at.rank - distance, at.size);
    plan.AddOutbound(to);
    plan.Add(SendPiece{
        .buffer = Buffer::kInput, .offset = static_cast<size_t>(to) * bytes, .bytes = bytes});
    plan.AddInbound(from);
    plan.Add(ReceivePiece{
        .take = Take::kStage, .offset = static_cast<size_t>(from) * bytes, .bytes = bytes});
  }
  CarryDirectly(plan);
}

void PlanDissemination(Position at, Plan& plan) {
  plan.Clear();
  int round = 0;
  for (int distance = 1; distance < at.size; distance *= 2, ++round) {
    plan.AddOutbound(Wrap(at.rank + distance, at.size), round);
    plan.outbound.back().slot = round;
    plan.AddInbound(Wrap(at.rank - distance, at.size));
    plan.inbound.back().slot = round + 1;
  }
  plan.slots = round + 1;
  plan.result = round;
}

void PlanFarewell(std::span<const int> peers, Plan& plan) {
  plan.Clear();
  plan.slots = 1;
  for (const int peer : peers) {
    plan.AddOutbound(peer);
    plan.outbound.back().slot = 0;
  }
}

}  // namespace elastic::internal
