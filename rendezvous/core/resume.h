#pragma once

#include <map>
#include <optional>
#include <span>

#include "rendezvous/base/roster.h"

namespace elastic::internal {

// Which committed versions a generation may resume from. Each generation's history is a line: it
// began at a version of its parent's line, so of the versions committed in an ancestor only those
// up to that point are on it. Versions beyond belong to an abandoned future and must never be
// resumed, however new they are (P3, P14).
class Lineage {
 public:
  // `resume` invalid: of an installed generation, it began without state; of a prepared one, its
  // boundary is not known yet. Commits of the parent past a boundary cannot exist (P25), so until
  // it is learned all versions of the parent count as on the line.
  void Add(GenerationNumber number, GenerationKind kind, GenerationNumber parent,
           StateVersion resume);
  void LearnBoundary(GenerationNumber number, StateVersion boundary);
  bool OnLine(StateVersion version, GenerationNumber tip) const;
  // The version that `number` began with; invalid if none, or not known.
  StateVersion ResumeOf(GenerationNumber number) const;
  bool Known(GenerationNumber number) const { return steps_.contains(number); }
  // Forgets all but the newest `count` generations, and what only they would show to be on a line.
  void KeepNewest(size_t count);

 private:
  struct Step {
    GenerationKind kind = GenerationKind::kInstalled;
    GenerationNumber parent;
    StateVersion resume;
  };
  std::map<GenerationNumber, Step> steps_;
};

// The newest of `offers` on the line of `tip`; invalid if there is none.
Held ChooseResume(const Lineage& lineage, GenerationNumber tip, std::span<const Held> offers);

}  // namespace elastic::internal
