// Rosters on this host: installed ones move the words of their members, prepared ones are only
// handed on (P5, P24, P25).
#include <algorithm>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

void AgentCore::State::TakeInstalled(const Roster& roster) {
  const GenerationNumber number = roster.id.number;
  if (number < installed.number || number <= installed_target) {
    return;
  }
  rosters.insert_or_assign(number, roster);
  installed_target = number;
  if (roster.kind == GenerationKind::kInstalled) {
    // Whoever is still in an older generation is closed: the server formed this one after it had
    // closed all numbers before.
    closed_wanted = std::max(closed_wanted, GenerationNumber{number.value - 1});
  }
}

// A prepared successor of an older generation than the present one is over.
void AgentCore::State::TakePrepared(const std::optional<Roster>& roster) {
  if (!roster.has_value() || roster->parent < installed.number ||
      roster->id.number <= closed_wanted) {
    prepared = {};
    return;
  }
  if (prepared != roster->id) {
    rosters.emplace(roster->id.number, *roster);
    prepared = roster->id;
    dirty = true;
  }
}

// An installed roster is applied as a whole, once no local member of an older generation can commit
// in it any more. One that was prepared moves nobody, so it is applied at once.
void AgentCore::State::Install() {
  if (installed_target <= installed.number) {
    return;
  }
  const Roster& roster = rosters.at(installed_target);
  if (roster.kind == GenerationKind::kInstalled) {
    for (const auto& [incarnation, worker] : workers) {
      const CommitWord& word = worker.word();
      const bool older = word.generation.value != 0 && word.generation < installed_target;
      if (worker.open() && (worker.awaiting_page || (older && !word.final_after_fence()))) {
        return;
      }
    }
  }
  installed = roster.id;
  dirty = true;
}

// Seen by its word: this worker passed the boundary, so the prepared generation is the present one.
void AgentCore::State::NoteCrossing(const AgentWorker& worker) {
  const auto found = rosters.find(worker.word().generation);
  if (found != rosters.end() && found->second.id == worker.reading.generation &&
      installed.number < found->first) {
    installed = found->second.id;
    dirty = true;
  }
}

// True if a reset is under way. A member enters a generation that is closed already with a fenced
// word, so that the answer given before stays true.
bool AgentCore::State::ResetWord(AgentWorker& worker) {
  const CommitWord& word = worker.word();
  const auto found = rosters.find(installed.number);
  const bool movable = word.generation.value == 0 || word.final_after_fence();
  if (found != rosters.end() && found->second.kind == GenerationKind::kInstalled && movable &&
      word.generation < installed.number && found->second.Find(worker.incarnation) != nullptr) {
    worker.awaiting_page = true;
    Emit(agent_action::Reset{worker.process, word, installed,
                             CommitWord{installed.number, 0, false, Closed(installed.number)}});
    return true;
  }
  const uint32_t over = std::min(closed_wanted.value, CommitWord::kCommitsMax);
  if (word.generation.value == 0 && word.commits < over) {
    worker.awaiting_page = true;
    Emit(agent_action::Reset{worker.process, word, {}, CommitWord{{}, over, false, false}});
    return true;
  }
  return false;
}

void AgentCore::State::Deliver(AgentWorker& worker) {
  if (finished.has_value()) {
    const auto roster = rosters.find(finished->generation.number);
    const bool member = worker.word().generation == finished->generation.number ||
                        (roster != rosters.end() && roster->second.Find(worker.incarnation));
    if (member && !worker.told_finish) {
      worker.told_finish = true;
      Emit(agent_action::DeliverFinish{worker.process, *finished});
    }
  }
  const bool unneeded = finished.has_value() && !worker.told_finish;
  if (unneeded && !worker.told_leave) {
    worker.told_leave = true;
    Emit(agent_action::TellLeave{worker.process});
  }
  if (finished.has_value() || worker.told_leave) {
    return;
  }
  for (const GenerationNumber number : {installed.number, prepared.number}) {
    const auto found = rosters.find(number);
    if (found != rosters.end() && !Closed(number)) {
      DeliverOne(worker, found->second);
    }
  }
}

// A prepared roster goes to the members of its parent, which dial its edges and agree on it, and to
// its newcomers. One that is entered is told again to a newcomer that was told another since, so
// that it asks for the right one.
void AgentCore::State::DeliverOne(AgentWorker& worker, const Roster& roster) {
  const GenerationNumber number = roster.id.number;
  const RosterEntry* own = roster.Find(worker.incarnation);
  const bool member = own != nullptr;
  if (roster.kind == GenerationKind::kInstalled) {
    if (!member || worker.reading.generation != roster.id || worker.delivered.contains(number)) {
      return;
    }
  } else {
    const auto parent = rosters.find(roster.parent);
    const bool passes = parent != rosters.end() && parent->second.Find(worker.incarnation);
    const bool outside = worker.word().generation.value == 0;
    const bool again = outside && roster.id == installed && worker.delivered_last != number;
    if ((!member && !passes) || (worker.delivered.contains(number) && !again)) {
      return;
    }
  }
  worker.delivered.insert(number);
  worker.delivered_last = number;
  Emit(agent_action::DeliverRoster{worker.process, roster, member ? own->rank : -1});
}

// Kept: what a live word names, the present generation with its parent, and what may follow.
void AgentCore::State::ForgetOldRosters() {
  const auto present = rosters.find(installed.number);
  if (present == rosters.end()) {
    return;
  }
  GenerationNumber oldest = installed.number;
  if (present->second.kind == GenerationKind::kPrepared) {
    oldest = std::min(oldest, present->second.parent);
  }
  for (const auto& [incarnation, worker] : workers) {
    if (worker.open() && worker.word().generation.value != 0) {
      oldest = std::min(oldest, worker.word().generation);
    }
  }
  rosters.erase(rosters.begin(), rosters.lower_bound(oldest));
  marks.erase(marks.begin(), marks.lower_bound(Mark{oldest, {}}));
}

}  // namespace elastic::internal
