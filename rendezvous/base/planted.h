#pragma once

#include <cstdint>

namespace elastic::internal {

// Mistakes that the simulator must find, or it proves nothing: one rule of the protocol left out
// each. They exist only in a second build of the three cores, which only tests/sim links; in every
// other build Planted() is a constant and the rule stands.
enum class PlantedBug : uint8_t {
  kNone,
  kStaleGenerationAccepted,  // a call that has missed the end of its generation may commit (P2)
  kOldIncarnationAnswers,    // what an agent's earlier life answered to a fence still counts (P2)
  kOrphanLimitIgnored,       // an agent without a server keeps its workers for ever (P20)
  kInstalledBeforeReady,     // a newcomer is put into a generation before it is ready (section 4)
  kUnsyncedHolder,           // who is in a generation is taken to hold what it resumes from (P3)
  kOlderVersionWins,         // P14
  kCommitAfterFence,         // a commit is begun in a word that is fenced (P5)
  kRestartFromZero,          // without a holder of the state the job begins anew (P19)
  kFinishRecordedEarly,      // the first finished report makes the record (P29)
  kOnlyKeptAnswer,           // V5: hosts whose members are not kept are not waited for
  kEnteredUnseen,            // V1: nobody asks who has entered a prepared successor
  kDifferenceAgreed,         // V7: contributions that differ name the boundary
  kMarkWithoutClosed,        // V9: a mark fences its own generation, no other number is closed
};

#ifdef ELASTIC_PLANTED_BUGS
extern PlantedBug planted_bug;  // defined by the program, set once before any core is made
inline bool Planted(PlantedBug bug) { return planted_bug == bug; }
#else
constexpr bool Planted(PlantedBug) { return false; }
#endif

}  // namespace elastic::internal
