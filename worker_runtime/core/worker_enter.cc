// Rosters, edges and entering: a generation is entered when the word names it, its edges stand and
// the state it resumes from is in place (P15, P25).
#include "rendezvous/base/check.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

void WorkerCore::State::On(const worker_event::RosterCame& event) {
  const Roster& roster = event.roster;
  const bool outside = word.generation.value == 0;
  const bool prepared = roster.kind == GenerationKind::kPrepared;
  if (outside ? prepared && roster.id.number.value <= word.commits
              : roster.id.number < word.generation) {
    return;  // over before it came
  }
  const bool member = roster.Find(self) != nullptr;
  if (!member && !prepared) {
    return;
  }
  rosters.emplace(roster.id.number, roster);
  // The newest one told is the one to be asked for: the agent repeats an older prepared roster when
  // that turned out to be entered.
  if (outside && prepared && member && fetch.generation != roster.id) {
    StartFetch(roster);
  }
  Advance();
}

void WorkerCore::State::On(const worker_event::OfferedAgain& event) { self = event.self; }

void WorkerCore::State::On(const worker_event::EdgesUp& event) {
  const auto found = rosters.find(event.generation.number);
  if (found != rosters.end() && found->second.id == event.generation) {
    edges_up.insert(event.generation.number);
    edge_tries.erase(event.generation.number);
    Advance();
  }
}

// A break counts as an accusation only in a generation that is not fenced (P18). Past an agreed
// boundary peers leave the old connections behind, and after the last step they exit: no losses.
void WorkerCore::State::On(const worker_event::PeerBroken& event) {
  edges_up.erase(event.generation.number);
  const bool leaving = boundary != 0 || finished;
  const Roster* roster = RosterOfWord();
  if (roster == nullptr || roster->id != event.generation || word.fenced || leaving ||
      roster->Find(event.peer) == nullptr) {
    return;
  }
  if (accused.insert(event.peer).second) {
    Emit(worker_action::ReportAccusation{{event.generation, event.peer}});
  }
}

const Roster* WorkerCore::State::RosterOfWord() const {
  const auto found = rosters.find(word.generation);
  return found != rosters.end() && found->second.id == word_id ? &found->second : nullptr;
}

bool WorkerCore::State::ShouldConnect(const Roster& roster) const {
  if (roster.Find(self) == nullptr || connecting.contains(roster.id.number)) {
    return false;
  }
  if (roster.kind == GenerationKind::kPrepared) {
    return word.generation.value == 0 || roster.parent == word.generation;
  }
  return roster.id == word_id && !word.fenced;
}

void WorkerCore::State::Advance() {
  const Roster* present = RosterOfWord();
  const bool can_enter = present != nullptr && !word.fenced && !word.committing &&
                         (call != present->id) && stage == CommitStage::kIdle;
  if (can_enter && entering != present->id) {
    BeginEntering(*present);
    if (ended) {
      return;
    }
  }
  for (const auto& [number, roster] : rosters) {
    if (ShouldConnect(roster)) {
      connecting.insert(number);
      Emit(worker_action::Connect{roster});
    }
  }
  if (can_enter && state_ready && edges_up.contains(present->id.number)) {
    Enter(*present);
  }
}

void WorkerCore::State::BeginEntering(const Roster& roster) {
  entering = roster.id;
  accused.clear();
  boundary = 0;
  if (roster.kind == GenerationKind::kPrepared) {
    // A newcomer that was told by a holder: its edges and its fetch are under way. Those of another
    // successor, prepared before this one, go once all are in it.
    state_ready = false;
    old_connections = true;
    HurryEdges(roster.id);
    return;
  }
  const GenerationNumber before{roster.id.number.value - 1};
  Emit(worker_action::Disconnect{before});
  ForgetEdges(before);
  old_connections = false;
  fetch = {};
  state_ready = true;
  if (!roster.resume.valid()) {
    held = {};  // whatever it was, it is on no line that goes on (P19)
  } else if (held.version != roster.resume.version) {
    state_ready = false;
    StartFetch(roster);
  } else if (held.digest != roster.resume.digest) {
    Fail("state of version " + ToString(held.version) +
         " differs from that of other ranks: some code between commits is not equal on all ranks");
  }
}

void WorkerCore::State::Enter(const Roster& roster) {
  const bool same_call = continuing == roster.id;
  entering = {};
  continuing = {};
  call = roster.id;
  finished = false;
  Emit(worker_action::ReportEntered{roster.id});
  NextInterval();
  Emit(worker_action::Open{roster, !same_call});
  if (same_call) {
    EndCommit(true);
  }
}

}  // namespace elastic::internal
