#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"
#include "rendezvous/core/membership_state.h"
#include "rendezvous/core/ranks.h"

namespace elastic::internal {

namespace {
// Copies named beside living holders: one spare is enough, and a roster stays short.
constexpr size_t kHoldersWanted = 2;
}  // namespace

bool Membership::State::Waiting(const Worker& worker) const {
  const WorkerReport& report = worker.report;
  const bool ready =
      (report.life == WorkerLife::kWaiting && report.data.valid()) ||
      (report.life == WorkerLife::kStarting && Planted(PlantedBug::kInstalledBeforeReady));
  return Reachable(worker) && ready && report.word.generation.value == 0 &&
         !Marked(report.incarnation) && !removed.contains(report.incarnation);
}

std::vector<const Worker*> Membership::State::Newcomers() const {
  std::vector<const Worker*> found = AllWaiting();
  std::erase_if(found, [&](const Worker* worker) {
    return installed && installed->Find(worker->report.incarnation) != nullptr;
  });
  return found;
}

std::vector<const Worker*> Membership::State::AllWaiting() const {
  std::vector<const Worker*> found;
  for (const auto& [id, worker] : workers) {
    if (Waiting(worker)) {
      found.push_back(&worker);
    }
  }
  std::ranges::sort(found, [](const Worker* a, const Worker* b) {
    return std::tie(a->host, a->report.slot) < std::tie(b->host, b->report.slot);
  });
  return found;
}

void Membership::State::FormSuccessor() {
  if (!installed || !Broken() || ending) {
    return;
  }
  Plan plan = Examine();
  if (BeginsAnew(plan)) {
    BeginAnew();
    plan = Examine();
  }
  NoteAnswers(plan.wait.reason);
  if (plan.wait.reason != WaitReason::kNone) {
    if (plan.state_lost && !anew_since) {
      End(static_cast<int>(JobExit::kStateLost),
          StrCat("every holder of the committed state is gone for good; generation ",
                 ToString(installed->id.number),
                 " cannot be continued and nothing is restarted from zero by itself", kZeroHint),
          StopMode::kGraceful);
    }
    return;
  }
  if (RemoveBrokenLink()) {
    return;
  }
  AddCauseUnlessKnown();
  if (NoProgress(plan)) {
    return;
  }
  if (!NumberLeft()) {
    EndWithoutNumbers("generation numbers");
    return;
  }
  InstallSuccessor(plan);
}

// P18. An accusation is explained by a member that is lost; else a connection broke between living
// workers. The same membership is tried again, then the worker with most broken edges goes; ties
// keep the lower rank. True: somebody has to go first.
bool Membership::State::RemoveBrokenLink() {
  if (accusations.empty() || LossKnown()) {
    return false;
  }
  // A boundary may have been passed meanwhile: with who left there the connection is gone.
  std::erase_if(accusations, [&](const auto& edge) {
    return installed->Find(edge.first) == nullptr || installed->Find(edge.second) == nullptr;
  });
  if (accusations.empty()) {
    AddCause({.text = "a connection to a worker that left at its last commit has broken"});
    return false;
  }
  const bool in_a_row = broken_links > 0 && now - last_broken_link < kBrokenLinkWindow;
  broken_links = in_a_row ? broken_links + 1 : 1;
  last_broken_link = now;
  Worker* worst = nullptr;
  std::ptrdiff_t worst_edges = 0;
  for (Worker* worker : members) {
    const WorkerIncarnation id = worker->report.incarnation;
    const std::ptrdiff_t edges = std::ranges::count_if(
        accusations, [&](const auto& edge) { return edge.first == id || edge.second == id; });
    if (edges >= worst_edges && edges > 0) {  // later members have higher ranks
      worst = worker;
      worst_edges = edges;
    }
  }
  ELASTIC_CHECK(worst != nullptr);
  const std::string cause = "has a broken connection to " + FarEnds(worst->report.incarnation);
  if (broken_links <= kBrokenLinkTries) {
    AddCause({.worker = worst->report.incarnation, .text = StrCat(NameOf(*worst), " ", cause)});
    return false;
  }
  removed.insert(worst->report.incarnation);
  MarkLost(*worst, StrCat(cause, ", ", broken_links, " times within ",
                          FormatDuration(kBrokenLinkWindow), ", and is removed"));
  return true;
}

std::string Membership::State::FarEnds(WorkerIncarnation id) const {
  std::set<int32_t> ranks;
  for (const auto& [reporter, accused] : accusations) {
    if (reporter == id || accused == id) {
      ranks.insert(Find(reporter == id ? accused : reporter)->rank);
    }
  }
  std::string text;
  for (const int32_t rank : ranks) {
    text += StrCat(text.empty() ? "rank " : ", rank ", rank);
  }
  return text + (ranks.size() == 1 ? ", which lives" : ", which live");
}

// A crash loop: generation after generation fails without one more committed step.
bool Membership::State::NoProgress(const Plan& plan) {
  if (plan.resume.version > progress) {
    failures_without_progress = 0;
    progress = plan.resume.version;
    made_progress.clear();
    for (const Worker* worker : members) {
      made_progress.insert(worker->report.incarnation);
    }
  } else if (!SameIncident()) {
    ++failures_without_progress;
  }
  if (spec.no_progress_limit == 0 || failures_without_progress < spec.no_progress_limit) {
    return false;
  }
  const std::string before =
      StrCat(failures_without_progress,
             failures_without_progress == 1 ? " generation" : " generations in a row",
             " failed without a newly committed step (--no-progress-limit); last: ");
  End(static_cast<int>(JobExit::kWorkerFailure), before + resets.back().view.cause,
      StopMode::kGraceful);
  ending->before_cause = before;
  return true;
}

// Recovery is faster than, say, the end of a host's processes one after the other.
bool Membership::State::SameIncident() const {
  const auto was_there = [&](const Worker* worker) {
    const WorkerIncarnation id = worker->report.incarnation;
    return !Marked(id) || made_progress.contains(id);
  };
  return now < installed_at + kIncidentWindow && std::ranges::all_of(members, was_there);
}

void Membership::State::InstallSuccessor(const Plan& plan) {
  std::vector<Candidate> candidates;
  size_t live_holders = 0;
  const auto add = [&](const Worker& worker, int32_t previous_rank) {
    const bool inside = Planted(PlantedBug::kUnsyncedHolder) && worker.in_generation(installed->id);
    const bool holds = plan.resume.valid() && (Holds(worker, plan.resume.version) || inside);
    live_holders += holds ? 1 : 0;
    candidates.push_back(CandidateOf(worker, previous_rank));
    candidates.back().holds_resume = holds;
  };
  for (const Worker* worker : plan.keep) {
    const RosterEntry* entry = installed->Find(worker->report.incarnation);
    ELASTIC_CHECK(entry != nullptr);
    add(*worker, entry->rank);
  }
  for (const Worker* worker : plan.add) {
    add(*worker, -1);
  }
  Roster roster{.id = {},
                .kind = GenerationKind::kInstalled,
                .parent = installed->id.number,
                .resume = plan.resume,
                .entries = AssignRanks(std::move(candidates))};
  for (const Worker* worker : plan.copies) {
    if (live_holders++ >= kHoldersWanted) {
      break;
    }
    const Host& host = hosts[static_cast<size_t>(worker->host)];
    roster.entries.push_back({.role = Role::kCopy,
                              .incarnation = worker->report.incarnation,
                              .rank = -1,
                              .previous_rank = -1,
                              .host = host.spec.name,
                              .slot = worker->report.slot,
                              .data = host.last.copies,
                              .holds_resume = true});
  }
  ELASTIC_CHECK(!plan.resume.valid() || live_holders > 0);
  roster.id = {incarnation, IssueNumber(), RosterDigest(roster)};
  Install(std::move(roster));
}

void Membership::State::Install(Roster roster) {
  lineage.Add(roster.id.number, roster.kind, roster.parent, roster.resume.version);
  TellCrashes(true);
  const Reset* reset = OpenReset();
  const std::string cause = reset != nullptr ? ", because " + reset->view.cause : std::string();
  CloseReset(roster);
  GiveUpPrepared(StrCat("generation ", ToString(roster.parent), " broke before"));
  installed = std::move(roster);
  parent.reset();
  marked.clear();
  accusations.clear();
  broken_since.reset();
  anew_since.reset();
  answered.reset();
  all_entered = false;
  installed_at = now;
  IndexMembers();
  std::erase_if(workers, [&](const auto& entry) {
    const Worker& worker = entry.second;
    const bool speaks = entry.first.agent == hosts[static_cast<size_t>(worker.host)].agent;
    return installed->Find(entry.first) == nullptr && (worker.copy_dropped || !speaks);
  });
  ForgetPast();
  PersistNow();
  publish_all = true;
  const Held& resume = installed->resume;
  const std::string from =
      resume.valid() ? StrCat("from step ", resume.step, ", version ", ToString(resume.version))
                     : std::string("from the beginning");
  Say(Severity::kInfo, Announcement(*installed, from) + cause);
}

void Membership::State::NoteEntered() {
  if (!installed || all_entered || Broken() || !AllEntered()) {
    return;
  }
  all_entered = true;
  publish_all = true;
  if (!resets.empty() && resets.back().view.to == installed->id.number) {
    resets.back().view.enter = now - resets.back().installed;
    resets.back().view.complete = true;
  }
  Say(Severity::kInfo, StrCat("generation ", ToString(installed->id.number), ": ",
                              members.size() == 1 ? "its member has"
                                                  : StrCat("all ", members.size(), " members have"),
                              " entered"));
}

}  // namespace elastic::internal
