// What must be true when the server decides something (G3-G7, G9).
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

// An agent that stands still past its deadline ends before it reads anything, and its guardian has
// killed the workers (P23): what it was told is as good as gone.
bool Sim::Spent(const Host& host) const {
  return host.kill_at.has_value() && now_ >= *host.kill_at + kKillAllowance;
}

// What a server had formed when it lost its memory, and no living agent was told: it never was.
void Sim::ForgetUnheard(const JournalRecord& record) {
  for (const GenerationId& id : ghost_.Ids()) {
    const bool heard = std::ranges::any_of(told_[id.number], [&](const auto& agent) {
      const Host& host = hosts_[static_cast<size_t>(agent.first)];
      return host.agent && host.life == agent.second && !Spent(host);
    });
    const bool learnt =
        std::ranges::find(record.prepared, id, &Roster::id) != record.prepared.end() ||
        (record.installed && record.installed->id == id) ||
        (record.parent && record.parent->id == id);
    // Older ones are its past, whose numbers are never issued again.
    const bool past = record.installed && id.number < record.installed->id.number;
    if (!heard && !learnt && !past && id.server < incarnations_) {
      Count("generation forgotten unheard");
      ghost_.Forget(id.number);
      told_.erase(id.number);
    }
  }
}

// The number of a generation that nobody alive knows may be issued again (P1). What was committed
// in the first one is then told from what the second commits by nothing, so it must be gone.
void Sim::CheckNumberIsFree(GenerationNumber number) {
  for (const auto& [id, process] : processes_) {
    const Host& host = hosts_[static_cast<size_t>(process.host)];
    const bool spent = host.life == process.life && Spent(host);
    if (process.page_kept && !spent && process.page.held.version.generation == number) {
      Violate(StrCat("G2 worker ", ToString(id), " holds version ",
                     ToString(process.page.held.version), ", and generation number ", number.value,
                     " is issued again"));
    }
  }
  ghost_.ForgetVersions(number);
}

// A newcomer is put into a generation only once it has started up.
void Sim::CheckReady(const Roster& roster) {
  for (const RosterEntry& entry : roster.entries) {
    const Process* process = entry.role == Role::kWorker ? Find(entry.incarnation) : nullptr;
    if (process != nullptr && !process->ready_told) {
      Violate(StrCat("G20 worker ", ToString(entry.incarnation), " is put into generation ",
                     roster.id.number.value, " before it is ready"));
    }
  }
}

void Sim::CheckPersisted(const JournalRecord& record) {
  if (journal_in_memory_) {
    ForgetUnheard(record);
  }
  for (const Roster& next : record.prepared) {
    if (ghost_.Find(next.id.number) == nullptr) {
      Count("prepared");
      CheckReady(next);
      CheckNumberIsFree(next.id.number);
    }
    ghost_.Formed(next);
  }
  if (record.installed) {
    const bool fresh = ghost_.Find(record.installed->id.number) == nullptr;
    if (fresh) {
      CheckInstalled(*record.installed);
    }
    ghost_.Formed(*record.installed);
    if (fresh) {
      CheckNumberIsFree(record.installed->id.number);
    }
    newest_installed_ = record.installed->id;
  }
  if (record.finished && !recorded_) {
    recorded_ = true;
    Count("finish recorded");
    CheckFinished(*record.finished);
  }
}

void Sim::CheckInstalled(const Roster& roster) {
  Count(!roster.parent.value    ? "first generation"
        : roster.resume.valid() ? "successor"
                                : "successor without state");
  CheckReady(roster);
  const JobView view = server_.core->View(now_);
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role == Role::kCopy) {
      Count("copy in a roster");
    }
    if (!entry.holds_resume) {
      continue;
    }
    const auto at = std::ranges::find(view.hosts, entry.host, &HostView::name);
    if (at == view.hosts.end() || at->agent != entry.incarnation.agent) {
      Violate(StrCat("G9 worker ", ToString(entry.incarnation), " is named as holder of ",
                     ToString(roster.resume.version), ", but its agent's life is over"));
    }
    const Process* holder = Find(entry.incarnation);
    if (holder == nullptr || !holder->page_kept || !(holder->page.held == roster.resume)) {
      // A host that was lost this moment cannot be known yet; its agent's life tells.
      if (holder != nullptr && holder->page_kept &&
          hosts_[static_cast<size_t>(holder->host)].life == holder->life) {
        Violate(StrCat("G9 worker ", ToString(entry.incarnation), " is named as holder of ",
                       ToString(roster.resume.version), " and holds ",
                       ToString(holder->page.held.version)));
      }
    }
  }
  const Roster* parent = ghost_.Find(roster.parent);
  if (parent == nullptr) {
    return;
  }
  if (only_workers_lost_) {
    ghost_.CheckNothingLost(roster);
  }
  const Roster* grandparent =
      parent->kind == GenerationKind::kPrepared ? ghost_.Find(parent->parent) : nullptr;
  for (const auto& [id, process] : processes_) {
    const auto host = static_cast<size_t>(process.host);
    const bool member = EntryOf(*parent, id) != nullptr ||
                        (grandparent != nullptr && EntryOf(*grandparent, id) != nullptr);
    const auto seen = std::ranges::find(view.hosts, hosts_[host].name, &HostView::name);
    const bool counted = seen != view.hosts.end() && seen->counted && seen->agent == id.agent;
    const StateVersion held = process.page.held.version;
    const bool of_line = held.generation == roster.parent ||
                         (grandparent != nullptr && held.generation == grandparent->id.number);
    if (member && counted && process.page_kept && of_line && held > roster.resume.version) {
      Violate(StrCat("G4 generation ", roster.id.number.value, " resumes from ",
                     ToString(roster.resume.version), " although worker ", ToString(id),
                     " on a counted host holds ", ToString(held)));
    }
  }
}

// A process, or an agent's copy, has a version of the line of the newest generation.
bool Sim::StateReachable() const {
  for (const auto& [id, process] : processes_) {
    const Host& host = hosts_[static_cast<size_t>(process.host)];
    if (process.page_kept && host.agent && host.life == process.life &&
        ghost_.OnLine(process.page.held.version, newest_installed_.number)) {
      return true;
    }
  }
  return false;
}

void Sim::CheckFinished(const FinishRecord& record) {
  const Roster* roster = ghost_.Find(record.generation.number);
  if (roster == nullptr || record.final_state.step != steps_) {
    Violate(StrCat("G7 recorded finished at step ", record.final_state.step, " of ", steps_));
    return;
  }
  ghost_.CheckHolds(record.final_state, "the record");
  for (const RosterEntry& entry : roster->entries) {
    const Process* process = entry.role == Role::kWorker ? Find(entry.incarnation) : nullptr;
    if (process != nullptr && !(process->page.held == record.final_state)) {
      Violate(StrCat("G7 recorded finished, but worker ", ToString(entry.incarnation), " holds ",
                     ToString(process->page.held.version)));
    }
  }
}

}  // namespace elastic::internal::sim
