#pragma once

#include <vector>

#include "rendezvous/base/roster.h"

namespace elastic::internal {

// A worker that is to be put into a generation.
struct Candidate {
  WorkerIncarnation incarnation;
  int host_order = 0;  // position of its host among the hosts the user named
  std::string host;
  int32_t slot = 0;
  Endpoint data;
  int32_t previous_rank = -1;  // -1: newcomer
  bool holds_resume = false;
};

// Worker entries with dense ranks. Those with a previous rank keep their order and come first;
// newcomers follow by host, then slot (so that a communicator can grow in place). With newcomers
// only, which is the first generation, ranks are therefore contiguous per host.
std::vector<RosterEntry> AssignRanks(std::vector<Candidate> candidates);

}  // namespace elastic::internal
