#include "collectives/schedule/schedule.h"

#include <algorithm>

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

void PlanRingAllReduce(Position at, ElementCount elements, Plan& plan) {
  ELASTIC_CHECK(at.size >= 2);
  const int n = at.size;
  plan.Clear();
  plan.AddInbound(Wrap(at.rank - 1, n));
  plan.AddOutbound(Wrap(at.rank + 1, n));
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

void PlanRingAllGather(Position at, size_t bytes, Plan& plan) {
  ELASTIC_CHECK(at.size >= 2);
  plan.Clear();
  plan.AddInbound(Wrap(at.rank - 1, at.size));
  plan.AddOutbound(Wrap(at.rank + 1, at.size));
  plan.Add(SendPiece{
      .buffer = Buffer::kOutput, .offset = static_cast<size_t>(at.rank) * bytes, .bytes = bytes});
  for (int step = 0; step < at.size - 1; ++step) {
    const size_t offset = static_cast<size_t>(Wrap(at.rank - step - 1, at.size)) * bytes;
    plan.Add(ReceivePiece{.take = Take::kStore, .offset = offset, .bytes = bytes});
    if (step < at.size - 2) {
      plan.Add(SendPiece{.buffer = Buffer::kOutput,
                         .offset = offset,
                         .bytes = bytes,
                         .follows = 0,
                         .follows_offset = static_cast<size_t>(step) * bytes});
    }
  }
}

void PlanDirectAllGather(Position at, size_t bytes, Plan& plan) {
  plan.Clear();
  for (int distance = 1; distance < at.size; ++distance) {
    const int from = Wrap(at.rank - distance, at.size);
    plan.AddOutbound(Wrap(at.rank + distance, at.size));
    plan.Add(SendPiece{
        .buffer = Buffer::kOutput, .offset = static_cast<size_t>(at.rank) * bytes, .bytes = bytes});
    plan.AddInbound(from);
    plan.Add(ReceivePiece{
        .take = Take::kStore, .offset = static_cast<size_t>(from) * bytes, .bytes = bytes});
  }
}

void PlanDissemination(Position at, size_t bytes, Plan& plan) {
  plan.Clear();
  int round = 0;
  for (int distance = 1; distance < at.size; distance *= 2, ++round) {
    plan.AddOutbound(Wrap(at.rank + distance, at.size), round);
    plan.Add(SendPiece{.buffer = Buffer::kOutput, .offset = 0, .bytes = bytes});
    // Output may not change while a message that carries it is half sent.
    plan.AddInbound(Wrap(at.rank - distance, at.size), round + 1);
    plan.Add(ReceivePiece{.take = Take::kReduce, .offset = 0, .bytes = bytes});
  }
}

}  // namespace elastic::internal
