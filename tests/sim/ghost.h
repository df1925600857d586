#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/base/report.h"

namespace elastic::internal::sim {

// What really happened, which no party of the protocol knows as a whole: every generation that was
// formed, every version that was ever written and out of which other one, what commit() returned.
// The global invariants are checked against it (G numbers, listed in README.md).
class Ghost {
 public:
  struct Version {
    StateVersion before;  // invalid: the initial state
    uint64_t step = 0;
    uint64_t content = 0;  // digest over the whole history
  };

  // The version that a worker holding `base` writes for its next step.
  static Held Next(const Held& base, StateVersion version, uint64_t step);

  void Formed(const Roster& roster);
  std::vector<GenerationId> Ids() const;
  void Forget(GenerationNumber number);
  // What was committed in an earlier generation of that number.
  void ForgetVersions(GenerationNumber number);
  void Written(WorkerIncarnation worker, const Held& base, const Held& held);
  void Committed(WorkerIncarnation worker, const GenerationId& generation, StateVersion version);
  void CrossedInto(const GenerationId& generation, StateVersion boundary);
  void Returned(StateVersion version) { returned_.insert(version); }
  // Only processes of workers were lost so far: no returned commit may be missing (G5).
  void CheckNothingLost(const Roster& successor);
  // Unknown versions and versions whose bytes differ are violations.
  void CheckHolds(const Held& held, const std::string& who);

  void Violate(std::string text) { violations_.push_back(std::move(text)); }
  const std::vector<std::string>& violations() const { return violations_; }
  const Roster* Find(GenerationNumber number) const;
  // `older` is `version` or was committed on the way to it.
  bool Contains(StateVersion version, StateVersion older) const;
  // A generation may resume from it: committed on the way to where `tip` began, or in it.
  bool OnLine(StateVersion version, GenerationNumber tip) const;

 private:
  bool IsAncestor(GenerationNumber older, GenerationNumber younger) const;

  std::map<GenerationNumber, Roster> generations_;
  std::map<GenerationNumber, StateVersion> boundaries_;
  std::map<StateVersion, Version> versions_;
  std::set<StateVersion> committed_, returned_;
  std::vector<std::string> violations_;
};

}  // namespace elastic::internal::sim
