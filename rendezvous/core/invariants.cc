#include <algorithm>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

namespace {
using Broken = std::vector<std::string>;

// I1: ranks of a roster are dense from 0, and no incarnation appears twice.
void CheckRanks(const Roster& roster, Broken& broken) {
  int32_t next = 0;
  std::set<WorkerIncarnation> seen;
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role != Role::kWorker) {
      continue;
    }
    if (entry.rank != next++ || !seen.insert(entry.incarnation).second) {
      broken.push_back(StrCat("I1: generation ", ToString(roster.id.number), " has rank ",
                              entry.rank, " of worker ", ToString(entry.incarnation),
                              " out of order or twice"));
    }
  }
}

// I2: the identity is that of the roster's content (P2).
void CheckIdentity(const Roster& roster, Broken& broken) {
  if (roster.id.roster_digest != RosterDigest(roster)) {
    broken.push_back(StrCat("I2: generation ", ToString(roster.id), " does not match its content"));
  }
}
}  // namespace

std::vector<std::string> Membership::BrokenInvariants() const {
  const State& state = *state_;
  Broken broken;
  if (!state.installed) {
    return broken;
  }
  const Roster& installed = *state.installed;
  CheckRanks(installed, broken);
  CheckIdentity(installed, broken);
  for (const Roster& next : state.prepared) {
    CheckRanks(next, broken);
    CheckIdentity(next, broken);
    // I3: a prepared roster is a successor of the installed one and has a higher number.
    if (next.parent != installed.id.number || next.id.number <= installed.id.number) {
      broken.push_back(StrCat("I3: prepared ", ToString(next.id.number), " does not follow ",
                              ToString(installed.id.number)));
    }
  }
  // I4: numbers in use have been issued; closed ones too.
  if (installed.id.number > state.numbers_issued || state.closed > state.numbers_issued) {
    broken.push_back("I4: a number is in use that was never issued");
  }
  // I5: a generation that is broken is closed, unless the job is over (P12, P29).
  if (!state.finished && !state.ending && state.Broken() && state.closed < installed.id.number) {
    broken.push_back(
        StrCat("I5: generation ", ToString(installed.id.number), " is broken but not closed"));
  }
  // I6: the resume version lies on the parent's line (P14).
  if (installed.kind == GenerationKind::kInstalled && installed.resume.valid() &&
      state.lineage.Known(installed.parent) &&
      !state.lineage.OnLine(installed.resume.version, installed.parent)) {
    broken.push_back(StrCat("I6: resume version ", ToString(installed.resume.version),
                            " is not on the line of generation ", ToString(installed.parent)));
  }
  // I7: a roster that resumes names at least one holder when it is formed (P14).
  if (installed.kind == GenerationKind::kInstalled && installed.resume.valid() &&
      std::ranges::none_of(installed.entries, &RosterEntry::holds_resume)) {
    broken.push_back(
        StrCat("I7: generation ", ToString(installed.id.number), " resumes, but names no holder"));
  }
  // I8: the record names the installed generation, and nothing is formed after it (P29).
  if (state.finished && state.finished->generation != installed.id) {
    broken.push_back("I8: a generation was installed after the job was recorded finished");
  }
  // I9: the job ends once and for a reason.
  if (state.ended && !state.ending) {
    broken.push_back("I9: the job ended without a reason");
  }
  return broken;
}

}  // namespace elastic::internal
