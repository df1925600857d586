#include "tests/sim/ghost.h"

#include "rendezvous/base/hash.h"
#include "rendezvous/base/log.h"

namespace elastic::internal::sim {

Held Ghost::Next(const Held& base, StateVersion version, uint64_t step) {
  uint64_t content = HashMix(base.digest, version.generation.value);
  content = HashMix(content, version.commits);
  return {version, HashMix(content, step), step};
}

const Roster* Ghost::Find(GenerationNumber number) const {
  const auto found = generations_.find(number);
  return found == generations_.end() ? nullptr : &found->second;
}

bool Ghost::IsAncestor(GenerationNumber older, GenerationNumber younger) const {
  while (younger.value != 0 && younger > older) {
    const Roster* roster = Find(younger);
    younger = roster == nullptr ? GenerationNumber{} : roster->parent;
  }
  return younger == older;
}

bool Ghost::Contains(StateVersion version, StateVersion older) const {
  while (version.valid() && version != older) {
    const auto found = versions_.find(version);
    version = found == versions_.end() ? StateVersion{} : found->second.before;
  }
  return version == older;
}

bool Ghost::OnLine(StateVersion version, GenerationNumber tip) const {
  if (!version.valid()) {
    return false;
  }
  const Roster* roster = Find(tip);
  if (version.generation == tip || roster == nullptr) {
    return version.generation == tip;
  }
  if (roster->kind == GenerationKind::kInstalled) {
    return Contains(roster->resume.version, version);
  }
  const auto boundary = boundaries_.find(tip);
  return boundary == boundaries_.end() ? OnLine(version, roster->parent)
                                       : Contains(boundary->second, version);
}

void Ghost::Formed(const Roster& roster) {
  const auto [at, fresh] = generations_.emplace(roster.id.number, roster);
  if (!fresh) {
    if (!(at->second.id == roster.id)) {
      Violate(StrCat("G12 generation number ", roster.id.number.value, " names two rosters"));
    }
    return;
  }
  if (roster.kind != GenerationKind::kInstalled) {
    return;
  }
  for (const auto& [number, other] : generations_) {
    if (other.kind == GenerationKind::kInstalled && number < roster.id.number &&
        !IsAncestor(number, roster.id.number)) {
      Violate(StrCat("G1 installed generations ", number.value, " and ", roster.id.number.value,
                     " are on two lines"));
    }
  }
  if (roster.resume.valid()) {
    CheckHolds(roster.resume, StrCat("roster ", roster.id.number.value));
    return;
  }
  for (const StateVersion& version : committed_) {
    if (versions_.at(version).step > 0) {
      Violate(StrCat("G3 generation ", roster.id.number.value, " restarts from zero after ",
                     ToString(version), " was committed"));
    }
  }
}

std::vector<GenerationId> Ghost::Ids() const {
  std::vector<GenerationId> ids;
  for (const auto& [number, roster] : generations_) {
    ids.push_back(roster.id);
  }
  return ids;
}

void Ghost::Forget(GenerationNumber number) {
  generations_.erase(number);
  boundaries_.erase(number);
}

void Ghost::ForgetVersions(GenerationNumber number) {
  const auto of_number = [number](const StateVersion& version) {
    return version.generation == number;
  };
  std::erase_if(versions_, [&](const auto& entry) { return of_number(entry.first); });
  std::erase_if(committed_, of_number);
  std::erase_if(returned_, of_number);
}

void Ghost::CheckHolds(const Held& held, const std::string& who) {
  const auto found = versions_.find(held.version);
  if (found == versions_.end()) {
    Violate(StrCat("G2 ", who, " names version ", ToString(held.version), ", never written"));
  } else if (found->second.content != held.digest || found->second.step != held.step) {
    Violate(StrCat("G2 ", who, " has other bytes for version ", ToString(held.version)));
  }
}

void Ghost::Written(WorkerIncarnation worker, const Held& base, const Held& held) {
  const auto [at, fresh] =
      versions_.emplace(held.version, Version{base.version, held.step, held.digest});
  if (!fresh) {
    CheckHolds(held, "worker " + ToString(worker));
  } else if (base.valid() ? held.step != base.step + 1 : held.step != 0) {
    Violate(StrCat("G6 worker ", ToString(worker), " commits step ", held.step, " after step ",
                   base.step, ": a step is lost or counted twice"));
  }
}

void Ghost::Committed(WorkerIncarnation worker, const GenerationId& generation,
                      StateVersion version) {
  committed_.insert(version);
  const GenerationNumber own = generation.number;
  for (const auto& [number, other] : generations_) {
    if (number <= own) {
      continue;
    }
    const auto entered = boundaries_.find(number);
    if (other.kind == GenerationKind::kPrepared) {
      if (other.parent == own && entered != boundaries_.end() && version > entered->second) {
        Violate(StrCat("G1e worker ", ToString(worker), " commits ", ToString(version),
                       " in generation ", own.value, " past the boundary to ", number.value));
      }
      continue;
    }
    if (!IsAncestor(own, number)) {
      Violate(StrCat("G1a worker ", ToString(worker), " commits ", ToString(version),
                     " although generation ", number.value, " is on another line"));
    }
    if (other.parent != own) {
      continue;
    }
    const StateVersion resume = other.resume.version;
    const bool off = resume.generation != own || version.commits > resume.commits;
    if (off && other.Find(worker) != nullptr) {
      Violate(StrCat("G1b worker ", ToString(worker), " of generation ", number.value, " commits ",
                     ToString(version), " past its resume version ", ToString(resume)));
    }
    if (resume.generation == own && version.commits > resume.commits + 1) {
      Violate(StrCat("G1c worker ", ToString(worker), " commits ", ToString(version),
                     ", more than one past ", ToString(resume)));
    }
  }
}

void Ghost::CrossedInto(const GenerationId& generation, StateVersion boundary) {
  const auto [at, fresh] = boundaries_.emplace(generation.number, boundary);
  if (!fresh && at->second != boundary) {
    Violate(StrCat("G1e generation ", generation.number.value, " is entered at ",
                   ToString(boundary), " and at ", ToString(at->second)));
  }
}

void Ghost::CheckNothingLost(const Roster& successor) {
  for (const StateVersion& version : returned_) {
    if (!Contains(successor.resume.version, version)) {
      Violate(StrCat("G5 generation ", successor.id.number.value, " resumes from ",
                     ToString(successor.resume.version), ", the returned commit ",
                     ToString(version), " is lost although only workers were"));
    }
  }
}

}  // namespace elastic::internal::sim
