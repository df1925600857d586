#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

bool SameOrders(const Orders& a, const Orders& b) {
  const Directive& x = a.directive;
  const Directive& y = b.directive;
  return a.installed == b.installed && a.prepared == b.prepared && x.agent == y.agent &&
         x.closed == y.closed && x.marks == y.marks && x.slots == y.slots &&
         x.spawn_allowed == y.spawn_allowed && x.remove == y.remove &&
         x.offer_again == y.offer_again && x.forget == y.forget && x.finished == y.finished &&
         x.stop == y.stop && x.relearning == y.relearning && x.put_answers == y.put_answers &&
         x.values == y.values;
}

// Everything an agent should bring about, but for the rosters' contents and the message's numbers.
Orders Membership::State::OrdersFor(int index, const std::vector<int32_t>& slots) const {
  const Host& host = hosts[static_cast<size_t>(index)];
  Orders orders;
  Directive& directive = orders.directive;
  directive.server = incarnation;
  directive.agent = host.agent;
  if (installed) {
    orders.installed = installed->id;
    for (const WorkerIncarnation& lost : marked) {
      directive.marks.push_back({installed->id.number, lost});
    }
  }
  if (!prepared.empty()) {
    orders.prepared = prepared.back().id;
  }
  directive.closed = closed;
  directive.slots = slots;
  directive.spawn_allowed = SlotFree(index, slots) && SpawnAllowed();
  for (auto at = workers.lower_bound({host.agent, 0});
       at != workers.end() && at->first.agent == host.agent; ++at) {
    const Worker& worker = at->second;
    if (removed.contains(at->first) && !worker.dead()) {
      directive.remove.push_back(at->first);
    } else if (Returned(worker)) {
      directive.offer_again.push_back(at->first);
    }
    if (Forgettable(worker)) {
      directive.forget.push_back(at->first);
    }
  }
  directive.finished = finished;
  directive.relearning = relearning.has_value();
  FillStore(host, directive);
  if (ending) {
    directive.stop = ending->mode;
    directive.stop_reason = ending->reason;
    directive.stop_exit_code = ending->exit_code;
  }
  return orders;
}

// P20: a member when its host fell silent, and none any more, whether it has entered or not. Marked
// for a fault of its own it is also in `removed`, and dies.
bool Membership::State::Returned(const Worker& worker) const {
  return installed && !finished && !ending && Reachable(worker) && !worker.dead() &&
         (Marked(worker.report.incarnation) ||
          (worker.report.word.generation.value != 0 && !Named(worker)));
}

// While survivors re-form, a starting process would only take the processor from them.
bool Membership::State::SpawnAllowed() const {
  if (ending || finished || relearning) {
    return false;
  }
  if (!installed) {
    return true;
  }
  const auto alive = std::ranges::count_if(members, [&](const Worker* worker) {
    return !worker->dead() && !Marked(worker->report.incarnation);
  });
  if (alive < spec.min_np) {
    return true;
  }
  if (finish_seen) {
    return false;
  }
  return broken_since ? now >= *broken_since + kSpawnHold
                      : all_entered || now >= installed_at + kSpawnHold;
}

// An agent may start a process only in a slot that this server knows to be free. Else, by the
// permission of quieter times, it would replace a dead worker before the survivors have re-formed,
// or run a program again that has just ended well.
bool Membership::State::SlotFree(int index, const std::vector<int32_t>& slots) const {
  const AgentIncarnation agent = hosts[static_cast<size_t>(index)].agent;
  return std::ranges::any_of(slots, [&](int32_t slot) {
    return std::none_of(workers.lower_bound({agent, 0}), workers.end(), [&](const auto& entry) {
      return entry.first.agent == agent && entry.second.report.slot == slot && !entry.second.dead();
    });
  });
}

// Which slots should have a live worker: -np of them until the job has begun, so that it begins
// with the same ones each time, whichever program starts faster; then as many as may train. Slots
// that have one keep it; free ones are filled in the order in which the user named the hosts, so
// that a lost worker is replaced in its own slot before a spare one is used.
std::vector<std::vector<int32_t>> Membership::State::WantedSlots() const {
  std::vector<std::set<int32_t>> wanted(hosts.size());
  const int most = installed ? spec.max_np : spec.np;
  int count = 0;
  if (installed) {
    for (const auto& [id, worker] : workers) {
      const auto host = static_cast<size_t>(worker.host);
      // A silent member that raised no mark (P20) still trains.
      const bool lives = Reachable(worker) || (installed->Find(id) != nullptr && !Marked(id));
      if (!worker.dead() && lives && !removed.contains(id)) {
        count += wanted[host].insert(worker.report.slot).second ? 1 : 0;
      }
    }
  }
  for (size_t host = 0; host < hosts.size(); ++host) {
    // Before the first generation the plan does not depend on who registers first.
    const bool available = installed ? hosts[host].connection && !Silent(hosts[host])
                                     : !hosts[host].start_failure || hosts[host].connection;
    for (int32_t slot = 0; available && slot < hosts[host].spec.slots && count < most; ++slot) {
      count += wanted[host].insert(slot).second ? 1 : 0;
    }
  }
  std::vector<std::vector<int32_t>> lists;
  for (size_t host = 0; host < hosts.size(); ++host) {
    auto& list = lists.emplace_back();
    for (const int32_t slot : wanted[host]) {
      // A program that ended by itself before it ever joined is not started again (first round).
      const bool ended_first = !installed && EndedFirstRound(static_cast<int>(host), slot);
      if (!ended_first && !finished && !ending && !relearning) {
        list.push_back(slot);
      }
    }
  }
  return lists;
}

bool Membership::State::EndedFirstRound(int host, int32_t slot) const {
  if (!first_deaths.contains({host, slot})) {
    return false;
  }
  return std::ranges::any_of(workers, [&](const auto& entry) {
    const WorkerReport& report = entry.second.report;
    return entry.second.host == host && report.slot == slot && entry.second.dead() &&
           !report.joined && report.exit && !report.exit->signalled;
  });
}

// A dead worker's entry and memory may go once its exit is counted and its copy is of no use: off
// the line, or older than what enough hosts hold.
bool Membership::State::Forgettable(const Worker& worker) const {
  // The first round is judged as a whole, so its dead are kept until it is over.
  return worker.dead() && worker.exit_counted && !worker.copy_dropped && !CopyNeeded(worker) &&
         (installed || ending);
}

bool Membership::State::CopyNeeded(const Worker& worker) const {
  const StateVersion version = worker.report.held.version;
  if (!version.valid() || !installed || finished || ending) {
    return false;
  }
  if (Broken() || !all_entered) {
    return true;  // what the next generation resumes from is not known yet
  }
  return lineage.OnLine(version, installed->id.number) && !StableBeyond(version);
}

bool Membership::State::StableBeyond(const StateVersion& version) const {
  std::set<int> holding;
  for (const Worker* worker : members) {
    if (Reachable(*worker) && MemberEntered(*worker) && worker->report.held.version > version) {
      holding.insert(worker->host);
    }
  }
  const auto counted = std::ranges::count_if(hosts, [](const Host& host) { return host.counted; });
  return std::ssize(holding) >= std::min<std::ptrdiff_t>(2, counted);
}

// An agent is written to when its orders change, and now and then for its heartbeat's sake: its
// deadlines count from the newest report that was acknowledged (P23).
void Membership::State::PublishChanges() {
  const std::vector<std::vector<int32_t>> slots =
      publish_all || !publish_hosts.empty() ? WantedSlots() : std::vector<std::vector<int32_t>>();
  for (size_t i = 0; i < hosts.size() && !slots.empty(); ++i) {
    Host& host = hosts[i];
    const int index = static_cast<int>(i);
    const bool reported_now = publish_hosts.contains(index);
    if (!host.connection || (!publish_all && !reported_now)) {
      continue;
    }
    Orders orders = OrdersFor(index, slots[i]);
    const bool changed = !host.told || !SameOrders(*host.told, orders);
    // An agent that stops ends once its last report is acknowledged: that is never put off.
    const bool beat_due = reported_now && (ending || now >= host.told_at + kAgentBeatInterval / 2);
    if (changed || beat_due) {
      host.told = std::move(orders);
      host.told_at = now;
      Emit(Publish{host.spec.name});
    }
  }
  publish_all = false;
  publish_hosts.clear();
}

std::optional<Directive> Membership::DirectiveFor(const std::string& name, Instant now) {
  State& state = *state_;
  state.now = std::max(state.now, now);
  Host* host = state.FindHost(name);
  if (host == nullptr || host->agent.value == 0) {
    return std::nullopt;
  }
  const int index = static_cast<int>(host - state.hosts.data());
  Directive directive =
      state.OrdersFor(index, state.WantedSlots()[static_cast<size_t>(index)]).directive;
  directive.installed = state.installed;
  if (!state.prepared.empty()) {
    directive.prepared = state.prepared.back();
  }
  if (host->last.acked_directive == host->directive_sequence) {
    host->ack_reference = state.now;  // from now on one is outstanding
  }
  directive.sequence = ++host->directive_sequence;
  directive.acked_report = host->last.sequence;
  if (host->final_sequence == 0 && (state.finished || state.ending)) {
    host->final_sequence = directive.sequence;
  }
  return directive;
}

}  // namespace elastic::internal
