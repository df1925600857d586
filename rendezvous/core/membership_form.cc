#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"
#include "rendezvous/core/membership_state.h"
#include "rendezvous/core/ranks.h"

namespace elastic::internal {

// The heart of recovery: whether a successor of the broken generation may be installed now, of
// whom, and from which version. Examine() changes nothing, so that status can show the same answer.
Plan Membership::State::Examine() const {
  ELASTIC_CHECK(installed.has_value());
  Plan plan;
  if (!ExamineMembers(plan) || !FenceAnswered(plan) || !AccusationsSettled(plan)) {
    return plan;
  }
  // P11: a successor without any member needs proof that nothing of the old one still runs.
  if (plan.keep.empty() && !AllLost(members)) {
    plan.wait = {.reason = WaitReason::kAllMembersSilent, .want = static_cast<int>(members.size())};
    for (const Worker* worker : members) {
      if (!Lost(*worker)) {
        plan.wait.who.push_back(NameOf(*worker));
        const Instant over = OrphansEnd(worker->report.incarnation.agent);
        plan.wait.until = std::max(plan.wait.until.value_or(over), over);
      }
    }
    plan.wait.have = plan.wait.want - static_cast<int>(plan.wait.who.size());
    plan.state_lost = StateLost();
    return plan;
  }
  if (!PreparedAccounted(plan)) {
    return plan;
  }
  // Newcomers are taken along only when it cannot go on without them; else they wait for a commit.
  // Those of a successor that they had not entered yet are newcomers like others.
  if (std::ssize(plan.keep) < spec.min_np) {
    for (const Worker* worker : AllWaiting()) {
      if (std::ssize(plan.keep) + std::ssize(plan.add) < spec.max_np &&
          std::ranges::find(plan.keep, worker) == plan.keep.end()) {
        plan.add.push_back(worker);
      }
    }
  }
  plan.state_lost = StateLost();
  const int able = static_cast<int>(plan.keep.size() + plan.add.size());
  if (able < spec.min_np) {
    plan.wait = {
        .reason = WaitReason::kMinNp, .have = able, .want = spec.min_np, .until = PatienceEnds()};
    return plan;
  }
  ChooseState(plan);
  return plan;
}

// Every word of the old generation, of its parent and of marked members must be final before the
// newest version is known (P14, V5, V6). False: somebody is waited for.
bool Membership::State::ExamineMembers(Plan& plan) const {
  const auto wait_for = [&](WaitReason reason, const Worker& worker) {
    if (plan.wait.reason == WaitReason::kNone) {
      plan.wait.reason = reason;
      plan.wait.want = static_cast<int>(members.size());
    }
    plan.wait.who.push_back(NameOf(worker));
  };
  const GenerationNumber number = installed->id.number;
  for (const Worker* worker : members) {
    if (worker->dead()) {
      continue;
    }
    if (!Reachable(*worker)) {
      // Silence that raised no mark (P20) does not end the generation, but once it is broken for
      // another reason a silent member is no more waited for than a marked one.
      if (!worker->reported && now < started + spec.heartbeat_timeout) {
        wait_for(WaitReason::kFenceAnswers, *worker);
      }
      continue;
    }
    if (Marked(worker->report.incarnation)) {
      wait_for(WaitReason::kFenceAnswers, *worker);
      continue;
    }
    const CommitWord& word = worker->report.word;
    const Host& host = hosts[static_cast<size_t>(worker->host)];
    if (word.generation.value == 0) {
      // Never entered, and its agent has closed the number: it may go on as a member. A newcomer of
      // a prepared successor is none yet.
      if (installed->kind == GenerationKind::kInstalled && Waiting(*worker) &&
          host.last.closed >= closed) {
        plan.keep.push_back(worker);
      }
      continue;
    }
    if (!worker->final_word() && Planted(PlantedBug::kOnlyKeptAnswer)) {
      continue;
    }
    if (!worker->final_word()) {
      wait_for(word.committing ? WaitReason::kCommitting : WaitReason::kFenceAnswers, *worker);
      continue;
    }
    const bool of_parent =
        installed->kind == GenerationKind::kPrepared && word.generation == installed->parent;
    if (word.generation == number || of_parent || host.last.closed >= number) {
      plan.keep.push_back(worker);
    } else {
      wait_for(WaitReason::kFenceAnswers, *worker);
    }
  }
  // Drained, perhaps holding the newest version: gone first, so that its copy can be offered.
  for (const Worker* worker : parent_members) {
    if (!worker->dead() && Reachable(*worker) &&
        installed->Find(worker->report.incarnation) == nullptr) {
      wait_for(WaitReason::kFenceAnswers, *worker);
    }
  }
  return plan.wait.reason == WaitReason::kNone;
}

// Every counted host that has a member of the generation, of its parent or of a prepared successor
// must have answered this fence, not an earlier one.
bool Membership::State::FenceAnswered(Plan& plan) const {
  std::set<int> asked;
  for (const std::vector<Worker*>* group : {&members, &parent_members}) {
    for (const Worker* worker : *group) {
      asked.insert(worker->host);
    }
  }
  for (const Roster& next : prepared) {
    for (const RosterEntry& entry : next.entries) {
      asked.insert(OrderOf(entry.host));
    }
  }
  for (const int index : asked) {
    const Host& host = hosts[static_cast<size_t>(index)];
    if (Planted(PlantedBug::kOnlyKeptAnswer) &&
        std::ranges::none_of(plan.keep, [&](const Worker* kept) { return kept->host == index; })) {
      continue;
    }
    if (host.counted && host.last.closed < closed) {
      plan.wait.who.push_back(host.spec.name);
    }
  }
  if (plan.wait.who.empty()) {
    return true;
  }
  plan.wait.reason = WaitReason::kFenceAnswers;
  plan.wait.want = static_cast<int>(asked.size());
  plan.wait.have = plan.wait.want - static_cast<int>(plan.wait.who.size());
  return false;
}

bool Membership::State::LossKnown() const {
  return std::ranges::any_of(members, [&](const Worker* worker) {
    return worker->dead() || Marked(worker->report.incarnation);
  });
}

bool Membership::State::AccusationsSettled(Plan& plan) const {
  const Instant settled = broken_since.value_or(now) + kAccusationSettle;
  if (accusations.empty() || LossKnown() || now >= settled) {
    return true;
  }
  std::set<WorkerIncarnation> accused;
  for (const auto& [reporter, id] : accusations) {
    accused.insert(id);
  }
  plan.wait = {.reason = WaitReason::kFenceAnswers,
               .want = static_cast<int>(members.size()),
               .until = settled};
  for (const WorkerIncarnation& id : accused) {
    plan.wait.who.push_back(NameOf(*Find(id)));
  }
  plan.wait.have = plan.wait.want - static_cast<int>(plan.wait.who.size());
  return false;
}

// P11 and V14: dead, or out of reach for so long that its own agent or guardian has killed it, or
// never in a generation while its agent lets it enter none of the old ones.
bool Membership::State::Lost(const Worker& worker) const {
  if (worker.dead()) {
    return true;
  }
  const Host& host = hosts[static_cast<size_t>(worker.host)];
  const bool present = worker.report.incarnation.agent == host.agent;
  if (worker.reported && !worker.stray && worker.report.word.generation.value == 0 && present &&
      host.last.closed >= closed) {
    return true;
  }
  return !Reachable(worker) && now >= OrphansEnd(worker.report.incarnation.agent);
}

bool Membership::State::AllLost(const std::vector<Worker*>& group) const {
  return std::ranges::all_of(group, [&](const Worker* worker) { return Lost(*worker); });
}

// P19: nothing that is within reach, or can come back, holds a version of this line; and no word
// shows that there never was one.
bool Membership::State::StateLost() const {
  const bool began_empty = installed->kind == GenerationKind::kInstalled &&
                           !lineage.ResumeOf(installed->id.number).valid();
  const bool unheard = std::ranges::any_of(
      hosts, [](const Host& host) { return !host.reported && !host.start_failure; });
  if (from_record && unheard && now < started + spec.orphan_limit + kKillAllowance) {
    return false;  // it may have a copy that this server's predecessor knew of
  }
  for (const auto& [id, worker] : workers) {
    const Host& host = hosts[static_cast<size_t>(worker.host)];
    const bool may_speak = id.agent == host.agent && !host.start_failure;
    const bool member = std::ranges::find(members, &worker) != members.end();
    if (Reachable(worker) || (worker.dead() && id.agent == host.agent)) {
      if (lineage.OnLine(worker.report.held.version, installed->id.number) ||
          (began_empty && member)) {
        return false;
      }
    } else if (may_speak || !worker.reported) {
      return false;
    }
  }
  return true;
}

// P10 (V1): a prepared successor that was ever sent may have been entered unseen. One member of it
// that is dead or shut out is enough, since it can then commit nothing.
bool Membership::State::PreparedAccounted(Plan& plan) const {
  if (Planted(PlantedBug::kEnteredUnseen)) {
    return true;
  }
  for (const Roster& next : prepared) {
    bool stopped = false, all_lost = true;
    for (const RosterEntry& entry : next.entries) {
      const Worker* worker = Find(entry.incarnation);
      if (worker == nullptr) {  // of a life of its agent that this server never heard of
        all_lost = all_lost && now >= OrphansEnd(entry.incarnation.agent);
        continue;
      }
      const Host& host = hosts[static_cast<size_t>(worker->host)];
      const bool shut_out = worker->reported && entry.incarnation.agent == host.agent &&
                            host.last.closed >= next.id.number;
      stopped = stopped || worker->dead() || shut_out;
      all_lost = all_lost && Lost(*worker);
    }
    if (!stopped && !all_lost) {
      plan.wait = {.reason = WaitReason::kPreparedMayBeEntered, .want = next.size()};
      return false;
    }
  }
  return true;
}

// A member whose host was silent and is back before the successor is formed, and which has been
// offered again: what it committed must not be lost (P14), so it is taken along if nobody else has
// that.
void Membership::State::TakeReturnedHolders(Plan& plan) const {
  Held newest = plan.resume;
  for (const Worker* worker : AllWaiting()) {
    const Held& held = worker->report.held;
    if (held.version > newest.version && lineage.OnLine(held.version, installed->id.number)) {
      newest = held;
    }
  }
  if (newest.version == plan.resume.version) {
    return;
  }
  plan.resume = newest;
  for (const Worker* worker : AllWaiting()) {
    if (Holds(*worker, newest.version) && std::ranges::count(plan.add, worker) == 0) {
      plan.add.push_back(worker);
    }
  }
}

// P14, P19. Dead workers' copies count like the living; a live worker outside counts only if it is
// taken along.
void Membership::State::ChooseState(Plan& plan) const {
  const GenerationNumber number = installed->id.number;
  const bool began_empty =
      installed->kind == GenerationKind::kInstalled && !lineage.ResumeOf(number).valid();
  bool nobody_committed = false;
  std::vector<Held> offers;
  for (const auto& [id, worker] : workers) {
    if (!Reachable(worker)) {
      continue;
    }
    const bool member = std::ranges::find(members, &worker) != members.end();
    const CommitWord& word = worker.report.word;
    // A final word without a commit, or one that never entered, shows that none of a generation
    // that began without state has committed: every commit needs all of them (P6, V10).
    nobody_committed = nobody_committed || (began_empty && member && !worker.stray &&
                                            (word.generation != number || word.commits == 0));
    const bool served = hosts[static_cast<size_t>(worker.host)].last.copies.valid();
    const bool offered = worker.dead() ? served && !worker.copy_dropped
                                       : member || std::ranges::count(plan.add, &worker) > 0;
    if (offered) {
      offers.push_back(worker.report.held);
    }
  }
  plan.resume = ChooseResume(lineage, number, offers);
  TakeReturnedHolders(plan);
  if (!plan.resume.valid()) {
    if (!nobody_committed && !anew_since && !Planted(PlantedBug::kRestartFromZero)) {
      plan.wait = {.reason = WaitReason::kResumeVersion, .want = 1, .until = PatienceEnds()};
    }
    return;
  }
  for (const auto& [id, worker] : workers) {
    const bool served = hosts[static_cast<size_t>(worker.host)].last.copies.valid();
    if (worker.dead() && served && Reachable(worker) && Holds(worker, plan.resume.version)) {
      plan.copies.push_back(&worker);
    }
  }
}

}  // namespace elastic::internal
