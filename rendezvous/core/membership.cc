#include "rendezvous/core/membership.h"

#include <algorithm>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

namespace {
template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;
}  // namespace

Membership::State::State(JobSpec job, ServerIncarnation own, std::optional<JournalRecord> restored,
                         Instant start)
    : spec(std::move(job)),
      incarnation(own),
      started(start),
      now(start),
      stepped(start),
      judges_from(start),
      link_trusted_from(start) {
  ELASTIC_CHECK(spec.np >= 1);
  ELASTIC_CHECK(spec.min_np >= 1 && spec.min_np <= spec.np && spec.np <= spec.max_np);
  for (const HostSpec& host : spec.hosts) {
    hosts.emplace_back().spec = host;
  }
  broken_since = start;
  if (restored) {
    agents_issued = restored->agents_reserved;
    numbers_issued = restored->numbers_reserved;
    Adopt(*restored);
  } else if (incarnation.value > 1) {
    relearning.emplace();
    agents_issued.value = FirstAgentOf(incarnation);
  }
}

// The rest of what was known is learnt from the agents' next reports.
void Membership::State::Adopt(const JournalRecord& record) {
  from_record = true;
  finished = record.finished;
  recorded_at = now;  // hosts that are not heard yet are still given the time to hear of it
  if (!record.installed) {
    return;
  }
  const auto add = [&](const Roster& roster) {
    lineage.Add(roster.id.number, roster.kind, roster.parent, roster.resume.version);
  };
  parent = record.parent;
  prepared = record.prepared;
  if (parent) {
    add(*parent);
  }
  add(*record.installed);
  std::ranges::for_each(prepared, add);
  installed = record.installed;
  installed_at = now;
  IndexMembers();
  for (const Roster& next : prepared) {
    Index(next);  // its newcomers may have entered it unseen, so they are waited for too (P10)
  }
}

Membership::Membership(JobSpec spec, ServerIncarnation incarnation,
                       std::optional<JournalRecord> restored, Instant now)
    : state_(std::make_unique<State>(std::move(spec), incarnation, std::move(restored), now)) {}
Membership::~Membership() = default;

Actions Membership::Step(Instant now, const Event& event) {
  State& state = *state_;
  state.now = std::max(state.now, now);
  // So late only if it was stopped: the agents have given up their streams, and come back one by
  // one.
  const std::optional<Instant> due = state.NextDeadline();
  const bool late = due && state.now > *due + kReturnAfterPause;
  if (state.now - state.stepped > 2 * kAgentBeatInterval) {
    // With agents that beat, a gap means that this server was stopped, or that all are silent. What
    // they sent meanwhile may still lie in the driver's queue, and must be read before judging.
    state.judges_from = state.now + (late ? kReturnAfterPause : 2 * kAgentBeatInterval);
  }
  state.stepped = state.now;
  state.actions.clear();
  if (state.ended) {
    // Late streams are told why nobody answers them; everything else has no meaning any more.
    if (const auto* connected = std::get_if<AgentConnected>(&event)) {
      state.Emit(RefuseAgent{connected->connection,
                             FailedPreconditionError("the job is over: " + state.ending->reason)});
    }
    return std::exchange(state.actions, {});
  }
  std::visit(Overloaded{[&](const AgentConnected& e) { state.OnConnected(e); },
                        [&](const AgentReported& e) { state.OnReported(e); },
                        [&](const AgentDisconnected& e) { state.OnDisconnected(e); },
                        [&](const AgentStartFailed& e) { state.OnStartFailed(e); },
                        [&](const StopRequested& e) { state.OnStopRequested(e); },
                        [&](const LauncherWent&) { state.launcher_gone = state.now; },
                        [&](const LauncherCame&) { state.launcher_gone.reset(); },
                        [&](const TimePassed&) { state.publish_all = true; }},
             event);
  state.Evaluate();
  return std::exchange(state.actions, {});
}

// What follows from the state does not depend on which event changed it, so every event runs the
// same list. Losses come first, since everything below asks whether the generation is broken; a
// finish that is complete wins over a loss in the same report (P29).
void Membership::State::Evaluate() {
  TellCrashes(ending || finished);
  UpdateCounted();
  EndRelearning();
  MarkLosses();
  RemoveLateEntrants();
  CloseIfBroken();
  DismissDrained();
  RecordIfFinished();
  if (!ending && !finished) {
    CheckFirstRound();
    FormFirst();
    FormSuccessor();
    NoteEntered();
    Prepare();
    GiveUpWaiting();
    TellWait();
  }
  EndWithoutLauncher();
  EndWhenGone();
  ForgetOldStores();
  PublishChanges();
}

std::optional<Instant> Membership::NextDeadline() const { return state_->NextDeadline(); }

JobView Membership::View(Instant now) const {
  // The picture's ages are of the moment of asking, not of the last event.
  state_->now = std::max(state_->now, now);
  return state_->View();
}

// What a server that relearns does not know must not look like a record of nothing.
void Membership::State::PersistNow() {
  if (relearning) {
    return;
  }
  Emit(Persist{{.server = incarnation,
                .numbers_reserved = numbers_issued,
                .agents_reserved = agents_issued,
                .installed = installed,
                .parent = parent,
                .prepared = prepared,
                .finished = finished}});
}

Host* Membership::State::FindHost(const std::string& name) {
  const auto index = static_cast<size_t>(OrderOf(name));
  return index < hosts.size() ? &hosts[index] : nullptr;
}

int Membership::State::OrderOf(const std::string& name) const {
  const auto found =
      std::ranges::find_if(hosts, [&](const Host& host) { return host.spec.name == name; });
  return static_cast<int>(found - hosts.begin());
}

Host* Membership::State::HostOf(ConnectionId connection) {
  const auto found =
      std::ranges::find_if(hosts, [&](const Host& host) { return host.connection == connection; });
  return found == hosts.end() ? nullptr : &*found;
}

Worker* Membership::State::Find(WorkerIncarnation id) {
  const auto found = workers.find(id);
  return found == workers.end() ? nullptr : &found->second;
}

const Worker* Membership::State::Find(WorkerIncarnation id) const {
  const auto found = workers.find(id);
  return found == workers.end() ? nullptr : &found->second;
}

bool Membership::State::Reachable(const Worker& worker) const {
  const Host& host = hosts[static_cast<size_t>(worker.host)];
  const bool present =
      worker.report.incarnation.agent == host.agent || Planted(PlantedBug::kOldIncarnationAnswers);
  return host.counted && worker.reported && present;
}

Instant Membership::State::LastHeard(AgentIncarnation agent) const {
  const auto found = heard.find(agent);
  return found == heard.end() ? started : std::max(found->second, started);
}

Instant Membership::State::OrphansEnd(AgentIncarnation agent) const {
  return LastHeard(agent) + spec.orphan_limit + kKillAllowance;
}

std::string Membership::State::NameOf(const Worker& worker) const {
  const WorkerReport& report = worker.report;
  const std::string place =
      StrCat(hosts[static_cast<size_t>(worker.host)].spec.name, ":", report.slot,
             report.pid > 0 ? StrCat(", pid ", report.pid) : std::string());
  return worker.rank >= 0 ? StrCat("rank ", worker.rank, " (", place, ")")
                          : StrCat("worker (", place, ")");
}

std::vector<Worker*> Membership::State::Index(const Roster& roster) {
  std::vector<Worker*> found;
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role != Role::kWorker) {
      continue;
    }
    Worker& worker = workers[entry.incarnation];
    if (!worker.report.incarnation.valid()) {  // from a restored roster, not reported yet
      worker.host = OrderOf(entry.host);
      worker.report.incarnation = entry.incarnation;
      worker.report.slot = entry.slot;
    }
    found.push_back(&worker);
  }
  return found;
}

void Membership::State::IndexMembers() {
  members = installed ? Index(*installed) : std::vector<Worker*>();
  for (size_t rank = 0; rank < members.size(); ++rank) {
    members[rank]->rank = static_cast<int32_t>(rank);
  }
  parent_members = parent ? Index(*parent) : std::vector<Worker*>();
}

}  // namespace elastic::internal
