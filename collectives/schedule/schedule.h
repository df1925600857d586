#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/schedule/plan.h"

namespace elastic::internal {

// The algorithms, as functions from (position, sizes) to a plan. All but the broadcasts are world
// collectives: their plans carry an agreement, and are not done on any rank before every rank has
// begun, even if nobody has data. All ranks of an operation call the
// same one with the same sizes. Requires: size >= 2 (a world of one sends nothing).
//
// Costs with n ranks, S bytes, latency a, time per byte b: ring allreduce 2(n-1)a + 2S(n-1)/n b,
// which is the least possible traffic; direct a + (n-1)S b, for sizes where latency counts.
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations" (2009); Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
// (1988) for dissemination.

// Which ranks this rank has a connection to, in ascending order: all of them up to `full_mesh_max`
// ranks, and above it those at a distance of a power of two, both ways round (the ring's
// neighbours are at distance one). n(n-1)/2 connections are cheap for 16 ranks, not for 1,000.
std::vector<int> EdgePeers(Position at, int full_mesh_max);

// Part `index` of `count` elements cut into `parts` parts that differ by at most one.
struct Segment {
  size_t first = 0;
  size_t count = 0;
};
Segment SegmentOf(size_t count, int parts, int index);

struct ElementCount {
  size_t count = 0;
  size_t element_bytes = 1;
};

// Segment x starts at rank x and travels the ring once to be reduced, in the order x, x+1, ...,
// and once more to be spread. Every element is therefore reduced in one order, and the copies of
// the result are equal to the last bit.
void PlanRingAllReduce(Position at, ElementCount elements, Plan& plan);

// Everybody's bytes to everybody's scratch, rank r's at r * bytes; the caller has put its own
// there and reduces in rank order afterwards.
void PlanDirectExchange(Position at, size_t bytes, Plan& plan);

struct BroadcastSize {
  int root = 0;
  size_t bytes = 0;
};
// Along the ring from the root, forwarding as it comes; each rank sends at most once.
void PlanRingBroadcast(Position at, BroadcastSize what, Plan& plan);
// The root sends to everybody.
void PlanFlatBroadcast(Position at, BroadcastSize what, Plan& plan);

// Rank r's `bytes_of[r]` bytes to output, behind those of the ranks before it, on all ranks; the
// caller has put its own there. Requires: one number for each rank.
void PlanRingAllGather(Position at, std::span<const size_t> bytes_of, Plan& plan);
void PlanDirectAllGather(Position at, std::span<const size_t> bytes_of, Plan& plan);

// `elements` are those of one rank's part. Part x starts at rank x + 1 and travels the ring once,
// in the order x + 1, x + 2, ..., x; it ends in output at x's place, and the other places of output
// hold what passed through. n - 1 parts are sent, which is the least possible.
void PlanRingReduceScatter(Position at, ElementCount elements, Plan& plan);
// Each rank's part of `bytes` bytes straight to it, from input; in scratch rank r's contribution to
// the own part lies at r * bytes. The caller has put its own there and reduces in rank order.
void PlanDirectReduceScatter(Position at, size_t bytes, Plan& plan);

// In round k a message without data to rank + 2^k and one from rank - 2^k, ceil(log2 n) rounds.
// Values come more than once, which an agreement allows.
void PlanDissemination(Position at, Plan& plan);

// A message without data to each of `peers`, and none from them.
void PlanFarewell(std::span<const int> peers, Plan& plan);

}  // namespace elastic::internal
