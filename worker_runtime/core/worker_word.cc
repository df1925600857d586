// What a look at the commit word means: the outcome of an own compare-exchange, a fence, a reset
// into the next generation (P5, P12).
#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

void WorkerCore::State::On(const worker_event::WordSeen& event) {
  if (word.generation.value != 0 && event.word.generation.value == 0) {
    // Offered again: whatever was being entered is over.
    entering = {};
    state_ready = false;
    old_connections = false;
    accused.clear();
  }
  word = event.word;
  word_id = event.generation;
  if (pending_cas.has_value()) {
    const worker_action::Cas cas = *std::exchange(pending_cas, std::nullopt);
    ResolveCas(cas);
  }
  ForgetOldRosters();
  CloseIfOver();
  if (word.fenced && fetch.generation == word_id && fetch.taking == TakeStage::kNone) {
    fetch = {};  // the next generation may resume from another version, and asks anew
  }
  Advance();
}

void WorkerCore::State::EmitCas(CommitWord to, const GenerationId& generation) {
  ELASTIC_CHECK(!pending_cas.has_value());
  pending_cas = worker_action::Cas{word, to, generation};
  Emit(*pending_cas);
}

// The agent may have fenced, even reset, the word between the exchange and this look, so success
// is told by what only the exchange could have written, not by equality.
void WorkerCore::State::ResolveCas(const worker_action::Cas& cas) {
  if (fetch.taking != TakeStage::kNone) {
    ResolveTaking(cas);
    return;
  }
  switch (stage) {
    case CommitStage::kMarking: ResolveMarking(cas); return;
    case CommitStage::kFinishing: ResolveFinishing(cas); return;
    case CommitStage::kCrossing: ResolveCrossing(cas); return;
    default: break;
  }
  // A newcomer entered the prepared generation that a holder told it of.
  if (word.generation == cas.to.generation && fetch.generation == cas.generation) {
    fetch.accepted = true;
    Emit(worker_action::AcceptState{cas.generation});
    return;
  }
  // The agent closed an older generation at this very moment. The offer stands, and comes once
  // only.
  const bool outside = word.generation.value == 0 && !word.fenced;
  if (outside && word.commits < cas.to.generation.value && fetch.generation == cas.generation) {
    EmitCas(cas.to, cas.generation);
  }
}

// Not set: the fence was first, or the generation is over altogether. Once set it stays until this
// worker clears it, so a later number here also means that it was not.
void WorkerCore::State::ResolveMarking(const worker_action::Cas& cas) {
  if (word.generation == cas.to.generation && word.committing) {
    stage = CommitStage::kCopying;
    Emit(worker_action::CopyState{{word.generation, word.commits + 1}});
    return;
  }
  EndCommit(false);
}

// Only a fence makes the exchange fail, and nobody resets a committing word: any other word than a
// committing one shows that this commit stands.
void WorkerCore::State::ResolveFinishing(const worker_action::Cas& cas) {
  if (word.generation == cas.to.generation && word.committing) {
    EmitCas({word.generation, word.commits + 1, false, word.fenced}, cas.generation);
    return;
  }
  if (cas.to.fenced) {
    // The agent saw `committing` and withholds its answer to the fence until it is told (P5).
    Emit(worker_action::ReportWordSettled{});
  }
  if (word.generation != cas.to.generation || word.fenced) {
    EndCommit(true);
    return;
  }
  const auto successor = rosters.find(GenerationNumber{boundary});
  if (boundary == 0 || successor == rosters.end()) {
    NextInterval();
    EndCommit(true);
    return;
  }
  if (successor->second.Find(self) == nullptr) {
    stage = CommitStage::kDrained;
    return;
  }
  stage = CommitStage::kCrossing;
  EmitCas({successor->first, 0, false, false}, successor->second.id);
}

// The commit itself stands either way.
void WorkerCore::State::ResolveCrossing(const worker_action::Cas& cas) {
  if (word.generation == cas.to.generation && word_id == cas.generation) {
    stage = CommitStage::kIdle;
    boundary = 0;
    continuing = cas.generation;
    entering = cas.generation;
    state_ready = true;
    old_connections = true;
    fetch = {};
    accused.clear();
    HurryEdges(cas.generation);
    return;
  }
  EndCommit(true);
}

void WorkerCore::State::ForgetOldRosters() {
  // Outside, a prepared generation up to the closed number cannot be entered any more; an installed
  // one is entered by the agent's reset, whatever this worker thinks of it.
  const bool outside = word.generation.value == 0;
  const GenerationNumber over{outside ? word.commits : word.generation.value - 1};
  rosters.erase(rosters.begin(), rosters.upper_bound(over));
  if (fetch.generation.valid() && fetch.generation.number <= over) {
    fetch = {};
  }
  if (outside && !connecting.empty() && *connecting.begin() <= over) {
    Emit(worker_action::Disconnect{over});
    ForgetEdges(over);
  }
}

// Ends what the program has under way in a generation that is over. A commit past `committing`
// still finishes; its collectives were complete.
void WorkerCore::State::CloseIfOver() {
  const GenerationId& present = continuing.valid() ? continuing : call;
  if (!call.valid() || (word_id == present && !word.fenced)) {
    return;
  }
  if (Planted(PlantedBug::kCommitAfterFence) && stage == CommitStage::kAwaiting &&
      word_id == present) {
    return;
  }
  Emit(worker_action::Close{call});
  if (stage == CommitStage::kAwaiting) {
    EndCommit(false);
  } else if (stage == CommitStage::kDrained || continuing.valid()) {
    EndCommit(true);
  }
  call = {};
  continuing = {};
  finished = false;
}

}  // namespace elastic::internal
