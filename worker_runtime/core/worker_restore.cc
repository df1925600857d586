// Taking the resume version from a holder (P14, P25).
#include "rendezvous/base/check.h"
#include "worker_runtime/core/worker_state.h"

namespace elastic::internal {

namespace {

// Each holder is asked this often before the worker gives up and is replaced.
constexpr size_t kFetchRoundsMax = 3;

// Equal versions have equal bytes (P3); the step is only a label.
bool SameBytes(const Held& a, const Held& b) {
  return a.version == b.version && a.digest == b.digest;
}

}  // namespace

// Starts at another holder for each rank, so that several newcomers do not all ask the same one.
void WorkerCore::State::StartFetch(const Roster& roster) {
  fetch = {};
  fetch.generation = roster.id;
  const bool prepared = roster.kind == GenerationKind::kPrepared;
  for (const RosterEntry& entry : roster.entries) {
    const bool holds =
        prepared ? entry.role == Role::kWorker && entry.previous_rank >= 0 : entry.holds_resume;
    if (holds && entry.incarnation != self) {
      fetch.holders.push_back(entry);
    }
  }
  const RosterEntry* own = roster.Find(self);
  if (!fetch.holders.empty() && own != nullptr) {
    fetch.next = static_cast<size_t>(own->rank) % fetch.holders.size();
  }
  FetchNext();
}

void WorkerCore::State::FetchNext() {
  const auto found = rosters.find(fetch.generation.number);
  if (found == rosters.end()) {
    return;
  }
  fetch.accepted = false;
  if (fetch.failures >= kFetchRoundsMax * fetch.holders.size()) {
    // Outside, another roster will come when the members are gone. Inside, the others wait for
    // this worker, so it makes room for a replacement that may have better luck.
    if (word.generation == fetch.generation.number) {
      Fail("none of " + std::to_string(fetch.holders.size()) +
           " holders gave the state of version " + ToString(found->second.resume.version) +
           " for generation " + ToString(fetch.generation) +
           "; look at their logs and at the links to them");
    }
    return;
  }
  const size_t index = fetch.next;
  fetch.next = (fetch.next + 1) % fetch.holders.size();
  Emit(worker_action::Fetch{found->second, fetch.holders[index]});
}

const RosterEntry& WorkerCore::State::Asked() const {
  return fetch.holders[(fetch.next + fetch.holders.size() - 1) % fetch.holders.size()];
}

// What is taken has the digest that was offered, the transport sees to that. So the offer is
// compared with what the roster names, before a byte is written or the page says that it is held
// here.
void WorkerCore::State::On(const worker_event::StateOffered& event) {
  if (!fetch.generation.valid() || event.generation != fetch.generation || fetch.accepted) {
    return;
  }
  const auto found = rosters.find(fetch.generation.number);
  if (found == rosters.end() || pending_cas.has_value()) {
    return;
  }
  const Roster& roster = found->second;
  if (word_id == event.generation && !word.fenced) {
    if (roster.resume.valid() && !SameBytes(event.state, roster.resume)) {
      Emit(worker_action::Warn{"state " + ToString(event.state.version) + " with digest " +
                               std::to_string(event.state.digest) + " of worker " +
                               ToString(Asked().incarnation) + " is not the one that generation " +
                               ToString(event.generation) +
                               " resumes from: " + ToString(roster.resume.version) +
                               " with digest " + std::to_string(roster.resume.digest)});
      ++fetch.failures;
      FetchNext();
      return;
    }
    fetch.accepted = true;
    Emit(worker_action::AcceptState{event.generation});
    return;
  }
  // A member is past the boundary: only now may this word name the prepared generation (P25). The
  // exchange fails if the agent has closed that number meanwhile.
  if (roster.kind == GenerationKind::kPrepared && word.generation.value == 0 && !word.fenced) {
    EmitCas({event.generation.number, 0, false, false}, event.generation);
  }
}

// It comes too late once the word is fenced: then the agent may have told what is held here.
void WorkerCore::State::On(const worker_event::StateCame& event) {
  if (!fetch.accepted || event.generation != fetch.generation) {
    return;
  }
  ELASTIC_CHECK(!pending_cas.has_value());
  fetch.came = event.state;
  fetch.taking = TakeStage::kMarking;
  EmitCas({word.generation, word.commits, true, false}, fetch.generation);
}

void WorkerCore::State::On(const worker_event::StateTaken& event) {
  ELASTIC_CHECK(fetch.taking == TakeStage::kTaking);
  held = event.state;
  fetch.taking = TakeStage::kClearing;
  EmitCas({word.generation, word.commits, false, word.fenced}, fetch.generation);
}

// As for a commit: only a fence makes an exchange fail, and nobody resets a committing word.
void WorkerCore::State::ResolveTaking(const worker_action::Cas& cas) {
  const bool marked = word.generation == cas.to.generation && word.committing;
  if (fetch.taking == TakeStage::kMarking) {
    if (marked) {
      fetch.taking = TakeStage::kTaking;
      Emit(worker_action::TakeState{fetch.came});
    } else {
      fetch = {};
    }
    return;
  }
  if (marked) {
    EmitCas({word.generation, word.commits, false, word.fenced}, cas.generation);
    return;
  }
  if (cas.to.fenced) {
    Emit(worker_action::ReportWordSettled{});
  }
  state_ready = entering == fetch.generation;
  fetch = {};
}

void WorkerCore::State::On(const worker_event::TransferStopped& event) {
  const auto found = rosters.find(event.generation.number);
  if (event.generation != fetch.generation || !fetch.accepted || found == rosters.end() ||
      fetch.taking != TakeStage::kNone) {
    return;
  }
  fetch.accepted = false;
  Emit(worker_action::Fetch{found->second, Asked()});
}

void WorkerCore::State::On(const worker_event::FetchFailed& event) {
  if (event.generation != fetch.generation || !fetch.generation.valid() ||
      fetch.taking != TakeStage::kNone) {
    return;
  }
  ++fetch.failures;
  FetchNext();
}

}  // namespace elastic::internal
