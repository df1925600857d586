#include <algorithm>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// Which members are lost. A death that an agent reports is true (P13). A host that is silent or
// gone takes its members with it: they are marked, that is removed, but not known to be dead.
void Membership::State::MarkLosses() {
  if (!installed || finished || ending) {
    return;
  }
  const int counted = MembersCounted();
  NoteLink(counted);
  for (const std::vector<Worker*>* group : {&members, &parent_members}) {
    for (Worker* worker : *group) {
      const Host& host = hosts[static_cast<size_t>(worker->host)];
      if (Marked(worker->report.incarnation)) {
        continue;
      }
      if (worker->dead()) {
        MarkLost(*worker, DeathText(*worker), !worker->report.exit);
      } else if (host.agent.value != 0 && worker->report.incarnation.agent != host.agent) {
        MarkLost(*worker, StrCat("was lost with the agent of host ", host.spec.name));
      } else if (!host.counted && HostGivenUp(host, counted) &&
                 (worker->reported || now >= started + spec.heartbeat_timeout)) {
        MarkLost(*worker,
                 host.stream_ended
                     ? StrCat("was lost: the agent of host ", host.spec.name, " is gone")
                     : StrCat("was lost: host ", host.spec.name, " is silent for ", Silence(host)));
      }
    }
  }
}

// A drained member stays until all have entered its successor (V6). If that breaks before, its
// state may be needed: it goes now, and its agent's copy of that state is offered like any other.
void Membership::State::DismissDrained() {
  if (!installed || finished || ending || !Broken()) {
    return;
  }
  for (Worker* worker : parent_members) {
    const WorkerIncarnation id = worker->report.incarnation;
    if (!worker->dead() && Reachable(*worker) && installed->Find(id) == nullptr &&
        removed.insert(id).second) {
      worker->given_up = "is no member of the generation that has broken";
      publish_all = true;
    }
  }
}

std::string Membership::State::Silence(const Host& host) const {
  return now >= OrphansEnd(host.agent)
             ? StrCat(FormatDuration(spec.orphan_limit), " (its workers have ended by then)")
             : FormatDuration(spec.heartbeat_timeout) + " (--heartbeat-timeout)";
}

// A stream that ended is a fact about the host. Silence may as well be trouble of the server's own
// link, so it counts only while the hosts that are heard could train without the silent one (P20),
// or a member has felt it too, or it has lasted so long that nothing of that host can live.
bool Membership::State::HostGivenUp(const Host& host, int members_counted) const {
  const bool link_works = members_counted >= spec.min_np && now >= link_trusted_from;
  return host.stream_ended.has_value() || link_works || AccusedHost(host) ||
         now >= OrphansEnd(host.agent);
}

// The hosts behind a link that works again aren't all heard at the same moment: the first of them
// must not make the others count as lost (P20).
void Membership::State::NoteLink(int members_counted) {
  if (members_counted >= spec.min_np) {
    if (std::exchange(link_doubted, false)) {
      link_trusted_from = now + spec.heartbeat_timeout;
    }
    return;
  }
  link_doubted = link_doubted || std::ranges::any_of(hosts, [&](const Host& host) {
                   return host.connection.has_value() && !host.counted && Silent(host);
                 });
}

bool Membership::State::AccusedHost(const Host& host) const {
  return std::ranges::any_of(accusations, [&](const auto& edge) {
    const Worker* worker = Find(edge.second);
    return worker != nullptr && &hosts[static_cast<size_t>(worker->host)] == &host &&
           edge.second.agent == host.agent;
  });
}

int Membership::State::MembersCounted() const {
  return static_cast<int>(std::ranges::count_if(members, [&](const Worker* worker) {
    return Reachable(*worker) && !worker->dead() && !Marked(worker->report.incarnation);
  }));
}

void Membership::State::MarkLost(Worker& worker, const std::string& cause, bool exit_follows) {
  marked.insert(worker.report.incarnation);
  if (!worker.dead()) {
    worker.given_up = cause;
  }
  if (installed && installed->Find(worker.report.incarnation) != nullptr) {
    AddCause({.worker = worker.report.incarnation,
              .who = NameOf(worker),
              .text = cause,
              .crash = worker.dead(),
              .open = exit_follows});
  }
  publish_all = true;
}

// A generation is broken when it cannot go on, whatever told us so: a lost member, an accusation, a
// fenced word in a report (V12), its number being closed, or a resume version that nobody can give
// any more (V11).
bool Membership::State::Broken() const {
  if (!installed) {
    return false;
  }
  const GenerationNumber number = installed->id.number;
  if (closed >= number || !accusations.empty()) {
    return true;
  }
  for (const Worker* worker : members) {
    const CommitWord& word = worker->report.word;
    const bool of_this_line =
        worker->in_generation(installed->id) ||
        (installed->kind == GenerationKind::kPrepared && word.generation == installed->parent) ||
        std::ranges::any_of(prepared,
                            [&](const Roster& next) { return next.id.number == word.generation; });
    if (Marked(worker->report.incarnation) || worker->dead() ||
        (worker->reported && word.fenced && of_this_line)) {
      return true;
    }
  }
  return SourceVanished();
}

// The version a generation resumes from can vanish while members still fetch it: its last holder's
// host is lost before anybody else has it. As soon as one member has entered with it, it is safe.
bool Membership::State::SourceVanished() const {
  const StateVersion resume = lineage.ResumeOf(installed->id.number);
  if (all_entered || !resume.valid()) {
    return false;
  }
  bool needed = false;
  for (const Worker* worker : members) {
    if (!worker->reported) {
      return false;
    }
    const bool in_it = worker->in_generation(installed->id);
    if ((in_it && worker->report.entered) || (Holds(*worker, resume) && Reachable(*worker))) {
      return false;
    }
    needed = needed || (in_it && !worker->dead() && !Holds(*worker, resume));
  }
  for (const RosterEntry& entry : installed->entries) {
    const Worker* worker = entry.role == Role::kCopy ? Find(entry.incarnation) : nullptr;
    if (worker != nullptr && Holds(*worker, resume) && Reachable(*worker)) {
      return false;
    }
  }
  return needed;
}

bool Membership::State::Holds(const Worker& worker, const StateVersion& version) const {
  return worker.reported && !worker.copy_dropped && worker.report.held.version == version;
}

// With the first sign of breakage every number issued so far is closed, so that no late message,
// mark or watcher can touch the generation that follows (P12).
void Membership::State::CloseIfBroken() {
  if (!installed || finished || ending) {
    return;
  }
  if (!Broken()) {
    broken_since.reset();
    anew_since.reset();
    return;
  }
  if (!broken_since) {
    broken_since = now;
  }
  if (closed < numbers_issued) {
    closed = numbers_issued;
    publish_all = true;
  }
  ELASTIC_CHECK(closed >= installed->id.number);
}

bool Membership::State::MemberEntered(const Worker& worker) const {
  return worker.in_generation(installed->id) && worker.report.entered && !worker.dead();
}

bool Membership::State::AllEntered() const {
  return std::ranges::all_of(members, [&](const Worker* worker) { return MemberEntered(*worker); });
}

// P15. Of those that have not entered, the ones that show a fault of their own go first: a member
// that waits for a hung neighbour looks late as well, and must not be taken for the cause.
void Membership::State::RemoveLateEntrants() {
  if (!installed || finished || ending || all_entered || Broken() ||
      now < installed_at + spec.entry_timeout) {
    return;
  }
  std::vector<Worker*> tardy, mute, late;
  const StateVersion resume = lineage.ResumeOf(installed->id.number);
  for (Worker* worker : members) {
    if (MemberEntered(*worker) || WaitsForSource(*worker, resume)) {
      continue;
    }
    late.push_back(worker);
    if (!worker->in_generation(installed->id)) {
      tardy.push_back(worker);
    } else if (worker->report.beat_age > 10 * kWorkerBeatInterval) {
      mute.push_back(worker);
    }
  }
  if (late.size() == members.size() && tardy.empty() && mute.empty()) {
    late.erase(late.begin(), late.end() - 1);  // nobody stands out: the highest rank goes
  }
  for (Worker* worker : !tardy.empty() ? tardy : !mute.empty() ? mute : late) {
    removed.insert(worker->report.incarnation);
    const std::string cause =
        StrCat("did not enter generation ", ToString(installed->id.number), " within ",
               FormatDuration(spec.entry_timeout), " (--entry-timeout)");
    MarkLost(*worker, cause);
    Say(Severity::kWarning, StrCat(NameOf(*worker), " ", cause, " and is removed"));
  }
}

bool Membership::State::WaitsForSource(const Worker& worker, const StateVersion& resume) const {
  if (!resume.valid() || Holds(worker, resume)) {
    return false;
  }
  return std::ranges::none_of(workers, [&](const auto& entry) {
    return Reachable(entry.second) && Holds(entry.second, resume);
  });
}

}  // namespace elastic::internal
