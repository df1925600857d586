#include "rendezvous/base/roster.h"

#include <algorithm>

#include "rendezvous/base/hash.h"

namespace elastic::internal {

int Roster::size() const {
  return static_cast<int>(std::ranges::count(entries, Role::kWorker, &RosterEntry::role));
}

const RosterEntry* Roster::Find(WorkerIncarnation incarnation) const {
  const auto found = std::ranges::find_if(entries, [&](const RosterEntry& entry) {
    return entry.role == Role::kWorker && entry.incarnation == incarnation;
  });
  return found == entries.end() ? nullptr : &*found;
}

const RosterEntry* Roster::AtRank(int32_t rank) const {
  const auto found = std::ranges::find_if(entries, [&](const RosterEntry& entry) {
    return entry.role == Role::kWorker && entry.rank == rank;
  });
  return found == entries.end() ? nullptr : &*found;
}

uint64_t RosterDigest(const Roster& roster) {
  uint64_t digest = HashMix(0, static_cast<uint64_t>(roster.kind));
  digest = HashMix(digest, roster.parent.value);
  digest = HashMix(digest, roster.resume.version.generation.value);
  digest = HashMix(digest, roster.resume.version.commits);
  digest = HashMix(digest, roster.resume.digest);
  for (const RosterEntry& entry : roster.entries) {
    digest = HashMix(digest, static_cast<uint64_t>(entry.role));
    digest = HashMix(digest, entry.incarnation.agent.value);
    digest = HashMix(digest, entry.incarnation.counter);
    digest = HashMix(digest, static_cast<uint32_t>(entry.rank));
    digest = HashMix(digest, static_cast<uint32_t>(entry.previous_rank));
    digest = HashMix(digest, HashText(entry.host));
    digest = HashMix(digest, static_cast<uint32_t>(entry.slot));
    digest = HashMix(digest, HashText(entry.data.address, entry.data.port));
    digest = HashMix(digest, entry.holds_resume ? 1 : 0);
  }
  return digest;
}

std::optional<Placement> PlacementOf(const Roster& roster, WorkerIncarnation incarnation) {
  const RosterEntry* self = roster.Find(incarnation);
  if (self == nullptr) {
    return std::nullopt;
  }
  Placement place{.rank = self->rank,
                  .size = roster.size(),
                  .local_rank = self->slot,
                  .local_index = 0,
                  .local_size = 0,
                  .cross_rank = 0,
                  .cross_size = 0};
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role != Role::kWorker) {
      continue;
    }
    if (entry.host == self->host) {
      ++place.local_size;
      place.local_index += entry.slot < self->slot ? 1 : 0;
    }
    if (entry.slot == self->slot) {
      ++place.cross_size;
      place.cross_rank += entry.rank < self->rank ? 1 : 0;
    }
  }
  place.local_leader = place.local_index == 0;
  return place;
}

}  // namespace elastic::internal
