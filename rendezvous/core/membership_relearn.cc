#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/core/membership_state.h"

// A server that was started again without its predecessor's record (P1). It takes what that record
// had from the agents, which keep every roster that may still matter, and then goes on like one
// that has a record. Until all hosts have spoken it decides nothing at all: whoever is silent may
// be in a newer generation than any that was told, and even a mark may be one of the past. Its
// agents go on in what they have; their leases are acknowledged.
//
// Its own incarnation and the agents' numbers need no agent: the first is reserved by whoever
// submits the job, the second come from a block of numbers that belongs to the first.
namespace elastic::internal {

namespace {
// What came over a wire is believed only if no code behind it can stumble over it.
bool Sound(const Roster& roster, const Membership::State& state) {
  int32_t next = 0;
  std::set<WorkerIncarnation> seen;
  const bool entries = std::ranges::all_of(roster.entries, [&](const RosterEntry& entry) {
    const bool known = static_cast<size_t>(state.OrderOf(entry.host)) < state.hosts.size();
    const bool in_order = entry.role == Role::kCopy ||
                          (entry.role == Role::kWorker && entry.rank == next++ &&
                           entry.incarnation.valid() && seen.insert(entry.incarnation).second);
    return known && in_order;
  });
  return entries && next > 0 && roster.id.valid() && roster.parent < roster.id.number &&
         roster.id.server < state.incarnation && roster.id.roster_digest == RosterDigest(roster);
}
}  // namespace

Instant Membership::State::RelearnLimit() const {
  return started + spec.orphan_limit + kKillAllowance;
}

// Rosters add up, the rest of a report is replaced by the next one.
void Membership::State::Learn(Host& host, const AgentReport& report) {
  ELASTIC_CHECK(relearning.has_value());
  if (report.memory) {
    for (const Roster& roster : report.memory->rosters) {
      if (Sound(roster, *this)) {
        relearning->rosters.insert_or_assign(roster.id, roster);
      } else {
        Say(Severity::kWarning,
            StrCat("the agent of host ", host.spec.name, " has a damaged roster of generation ",
                   ToString(roster.id), ", which is left out"));
      }
    }
    if (report.memory->finished) {
      relearning->finished = report.memory->finished;
    }
    if (report.memory->stop > relearning->stop.stop) {
      relearning->stop = *report.memory;
    }
  }
  relearning->applied.insert(report.installed);
  // One in the place of another knows what happened on its host only from a server that did.
  if (!host.replaces || (report.memory && report.memory->told_all)) {
    relearning->spoke.insert(static_cast<int>(&host - hosts.data()));
  }
  host.unread = report;
}

namespace {
// The newest generation that was installed: formed, or prepared and entered.
const Roster* NewestInstalled(const Relearning& told) {
  const Roster* newest = nullptr;
  for (const auto& [id, roster] : told.rosters) {
    const bool installed = roster.kind == GenerationKind::kInstalled || told.applied.contains(id);
    if (installed && (newest == nullptr || newest->id.number <= id.number)) {
      newest = &roster;
    }
  }
  return newest;
}

JournalRecord RecordOf(const Relearning& told) {
  JournalRecord record;
  const Roster* newest = NewestInstalled(told);
  if (newest == nullptr) {
    return record;
  }
  record.installed = *newest;
  for (const auto& [id, roster] : told.rosters) {
    if (newest->kind == GenerationKind::kPrepared && id.number == newest->parent) {
      record.parent = roster;
    }
    if (roster.kind == GenerationKind::kPrepared && roster.parent == newest->id.number) {
      record.prepared.push_back(roster);
    }
  }
  std::ranges::sort(record.prepared, {}, [](const Roster& roster) { return roster.id.number; });
  if (told.finished && told.finished->generation == newest->id) {
    record.finished = told.finished;
  }
  return record;
}
}  // namespace

// All hosts have spoken, or those that have not are dead by now.
void Membership::State::EndRelearning() {
  const bool all_spoke = relearning && relearning->spoke.size() == hosts.size();
  if (!relearning || (!all_spoke && !ending && now < RelearnLimit())) {
    return;  // a job that ends forms nothing any more, so it need not wait
  }
  const Relearning told = *std::exchange(relearning, std::nullopt);
  relearnt_in_part = !all_spoke;
  Adopt(RecordOf(told));
  PersistNow();
  publish_all = true;
  for (Host& host : hosts) {
    if (const std::optional<AgentReport> report = std::exchange(host.unread, std::nullopt)) {
      ApplyReport(host, *report);
    }
  }
  if (installed) {
    Say(Severity::kInfo,
        StrCat("this server knew nothing of the job and has learnt it from the "
               "agents: generation ",
               ToString(installed->id.number), " of ", Members(installed->size())));
  } else if (!all_spoke && !spec.allow_restart_from_zero) {
    // Who is silent for good may have trained, and what it committed went with it (P19).
    End(static_cast<int>(JobExit::kStateLost),
        "the server was started again without its memory, and an agent that could have told "
        "whether the job had begun is gone: nothing is restarted from zero without "
        "--allow-restart-from-zero",
        StopMode::kGraceful);
  }
  if (told.stop.stop > StopMode::kNone) {
    End(told.stop.stop_exit_code, told.stop.stop_reason, told.stop.stop);
  }
}

Wait Membership::State::WaitForMemory() const {
  Wait wait{.reason = WaitReason::kMemory,
            .have = static_cast<int>(relearning->spoke.size()),
            .want = static_cast<int>(hosts.size()),
            .until = RelearnLimit()};
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!relearning->spoke.contains(static_cast<int>(i))) {
      wait.who.push_back(hosts[i].spec.name);
    }
  }
  return wait;
}

}  // namespace elastic::internal
