#include "rendezvous/core/resume.h"

#include <limits>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"

namespace elastic::internal {

void Lineage::Add(GenerationNumber number, GenerationKind kind, GenerationNumber parent,
                  StateVersion resume) {
  ELASTIC_CHECK(number.value != 0);
  ELASTIC_CHECK(parent < number);
  steps_[number] = {kind, parent, resume};
}

void Lineage::LearnBoundary(GenerationNumber number, StateVersion boundary) {
  const auto found = steps_.find(number);
  ELASTIC_CHECK(found != steps_.end());
  found->second.resume = boundary;
}

bool Lineage::OnLine(StateVersion version, GenerationNumber tip) const {
  if (!version.valid()) {
    return false;
  }
  GenerationNumber at = tip;
  uint32_t commits_max = std::numeric_limits<uint32_t>::max();
  // Numbers only fall on the way back, so the walk may stop once it is past the version's own.
  while (at.value != 0 && at >= version.generation) {
    if (at == version.generation) {
      return version.commits <= commits_max;
    }
    const auto found = steps_.find(at);
    if (found == steps_.end()) {
      return false;
    }
    const Step& step = found->second;
    if (step.resume.valid()) {
      at = step.resume.generation;
      commits_max = step.resume.commits;
    } else if (step.kind == GenerationKind::kPrepared) {
      at = step.parent;
      commits_max = std::numeric_limits<uint32_t>::max();
    } else {
      return false;
    }
  }
  return false;
}

StateVersion Lineage::ResumeOf(GenerationNumber number) const {
  const auto found = steps_.find(number);
  return found == steps_.end() ? StateVersion{} : found->second.resume;
}

void Lineage::KeepNewest(size_t count) {
  while (steps_.size() > count) {
    steps_.erase(steps_.begin());
  }
}

Held ChooseResume(const Lineage& lineage, GenerationNumber tip, std::span<const Held> offers) {
  Held best;
  for (const Held& offer : offers) {
    const bool older = Planted(PlantedBug::kOlderVersionWins) && offer.version < best.version;
    if ((offer.version > best.version || older) && lineage.OnLine(offer.version, tip)) {
      best = offer;
    }
  }
  return best;
}

}  // namespace elastic::internal
