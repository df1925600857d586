#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/ids.h"

namespace elastic::internal {

enum class Role : uint8_t {
  kUnspecified = 0,
  kWorker = 1,
  kCopy = 2,  // an agent that serves the committed state of a dead or removed worker; no rank
};

struct RosterEntry {
  Role role = Role::kWorker;
  WorkerIncarnation incarnation;  // of a copy: the worker whose state it is
  int32_t rank = -1;              // dense from 0; -1 for copies
  int32_t previous_rank = -1;     // in the parent generation; -1 for newcomers
  std::string host;
  int32_t slot = 0;           // equals local_rank for life
  Endpoint data;              // data listener of the worker, or the agent's copy server
  bool holds_resume = false;  // has the resume version: restores by itself and serves others
  friend bool operator==(const RosterEntry&, const RosterEntry&) = default;
};

// How a generation came to be.
enum class GenerationKind : uint8_t {
  kUnspecified = 0,
  kInstalled = 1,  // formed by the server: first start or after a loss; agents reset the words
  kPrepared = 2,   // entered at a commit boundary by the ranks themselves (P25)
};

// One fixed membership: an ordered list of entries and the version of state they resume from.
struct Roster {
  GenerationId id;
  GenerationKind kind = GenerationKind::kInstalled;
  GenerationNumber parent;  // 0: the first
  Held resume;  // invalid: starts without state (P19), or prepared: boundary not known yet
  std::vector<RosterEntry> entries;  // workers in rank order, then copies

  int size() const;                                              // workers
  const RosterEntry* Find(WorkerIncarnation incarnation) const;  // worker entries only
  const RosterEntry* AtRank(int32_t rank) const;
  friend bool operator==(const Roster&, const Roster&) = default;
};

// The digest that is part of GenerationId: over kind, parent, resume version and all entries,
// but not over the id itself. Equal rosters give equal digests on every host.
uint64_t RosterDigest(const Roster& roster);

// Sizes as Horovod defines them, for one member of a roster.
struct Placement {
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0;   // the slot; gaps are possible
  int32_t local_index = 0;  // dense index among the host's members
  int32_t local_size = 1;
  int32_t cross_rank = 0, cross_size = 1;  // among the hosts that have this local_rank
  bool local_leader = true;
};
std::optional<Placement> PlacementOf(const Roster& roster, WorkerIncarnation incarnation);

}  // namespace elastic::internal
