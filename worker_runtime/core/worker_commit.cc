// commit(): the agreement, the mark, the copy, the next number (P5, P6, P25).
#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

void WorkerCore::State::On(const worker_event::CommitWanted& event) {
  ELASTIC_CHECK(stage == CommitStage::kIdle);
  const bool stale = event.generation != call && !Planted(PlantedBug::kStaleGenerationAccepted);
  if (!call.valid() || stale || finished) {
    Emit(worker_action::CommitReturns{false});
    return;
  }
  stage = CommitStage::kAwaiting;
  committing = call;
  if (agreed) {
    MarkCommit();
  } else {
    Emit(worker_action::AwaitAgreement{call, Contribution()});
  }
}

// Fixed by the first world collective of the interval: what a later one would say is not what the
// commit goes by. A successor is contributed only once its own edges stand: then nobody waits for
// dialling at the boundary (P27), and one that cannot be connected is never agreed on.
const Agreement& WorkerCore::State::Contribution() {
  if (contributed) {
    return *contributed;
  }
  uint32_t prepared = 0;
  for (const auto& [number, roster] : rosters) {
    const bool usable = roster.Find(self) == nullptr || edges_up.contains(number);
    if (roster.kind == GenerationKind::kPrepared && roster.parent == word.generation && usable) {
      prepared = number.value;
    }
  }
  const Roster* roster = RosterOfWord();
  const RosterEntry* own = roster == nullptr ? nullptr : roster->Find(self);
  const uint32_t rank = own == nullptr ? 0 : static_cast<uint32_t>(own->rank);
  contributed = Agreement::Of(prepared, stop_wanted,
                              {.commits = word.commits, .rank = rank, .step = held.step});
  return *contributed;
}

void WorkerCore::State::On(const worker_event::CollectiveWanted& event) {
  if (!call.valid() || event.generation != call || contributed) {
    return;
  }
  Emit(worker_action::Contribute{Contribution()});
}

void WorkerCore::State::On(const worker_event::StopWanted& event) { stop_wanted |= event.by; }

// Ranks that enter one world collective have made equally many commits, with equal steps, unless
// the program commits unequally. That is looked at in every one: a rank that commits too rarely
// would see it in none of its first ones.
void WorkerCore::State::On(const worker_event::Agreed& event) {
  if (!call.valid() || event.generation != call || !contributed) {
    return;
  }
  if (!event.agreement.least.SameCommit(event.agreement.most)) {
    FailProgram(DescribeUnequal(event.agreement.least, event.agreement.most));
    return;
  }
  if (agreed) {
    return;
  }
  if (old_connections) {
    // All ranks are in this generation now, so nobody can take it for a loss.
    const GenerationNumber before{event.generation.number.value - 1};
    old_connections = false;
    Emit(worker_action::Disconnect{before});
    ForgetEdges(before);
  }
  agreed = event.agreement;
  stop_wanted |= agreed->stop;
  if (stage == CommitStage::kAwaiting) {
    MarkCommit();
  }
}

// The agreement names a boundary only if all contributed the same (V7). Where it stops the job
// nobody is taken in any more: a newcomer would not know of it.
void WorkerCore::State::MarkCommit() {
  stop = agreed->stop;
  const bool same = agreed->smallest_prepared == agreed->largest_prepared;
  boundary = same && stop == 0 ? agreed->smallest_prepared : 0;
  if (Planted(PlantedBug::kDifferenceAgreed)) {
    boundary = contributed->smallest_prepared;
  }
  if (boundary != 0 && boundary != contributed->smallest_prepared) {
    Fail("agreement of generation " + ToString(committing) + " named " + std::to_string(boundary) +
         ", this rank contributed " + std::to_string(contributed->smallest_prepared));
    return;
  }
  if (word.commits >= CommitWord::kCommitsMax) {
    Fail("too many commits in one generation: " + std::to_string(word.commits));
    return;
  }
  stage = CommitStage::kMarking;
  const bool fenced = Planted(PlantedBug::kCommitAfterFence) && word.fenced;
  EmitCas({word.generation, word.commits, true, fenced}, committing);
}

void WorkerCore::State::NextInterval() {
  contributed.reset();
  agreed.reset();
}

void WorkerCore::State::On(const worker_event::CopyDone& event) {
  ELASTIC_CHECK(stage == CommitStage::kCopying);
  ELASTIC_CHECK((event.state.version == StateVersion{word.generation, word.commits + 1}));
  held = event.state;
  stage = CommitStage::kFinishing;
  EmitCas({word.generation, word.commits + 1, false, word.fenced}, committing);
}

// As for a contribution: before its own edges stand nobody gains by a commit. A wish to stop counts
// till a commit has carried it, and after a restore again.
bool WorkerCore::CommitWanted() const {
  const State& state = *state_;
  const bool computing = state.call.valid() && !state.continuing.valid() && !state.finished;
  const auto waits = [&](const auto& entry) {
    const auto& [number, roster] = entry;
    return roster.kind == GenerationKind::kPrepared && roster.parent == state.call.number &&
           (roster.Find(state.self) == nullptr || state.edges_up.contains(number));
  };
  return computing && (state.stop_wanted != 0 || std::ranges::any_of(state.rosters, waits));
}

void WorkerCore::State::EndCommit(bool committed) {
  stage = CommitStage::kIdle;
  boundary = 0;
  committing = {};
  Emit(worker_action::CommitReturns{committed, committed ? stop : 0});
  stop = 0;
}

}  // namespace elastic::internal
