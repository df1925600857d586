#include <algorithm>

#include "rendezvous/core/membership_state.h"
#include "rendezvous/core/ranks.h"

namespace elastic::internal {

Candidate Membership::State::CandidateOf(const Worker& worker, int32_t previous_rank) const {
  return {.incarnation = worker.report.incarnation,
          .host_order = worker.host,
          .host = hosts[static_cast<size_t>(worker.host)].spec.name,
          .slot = worker.report.slot,
          .data = worker.report.data,
          .previous_rank = previous_rank};
}

bool Membership::State::FirstRoundIsOver() const {
  // Somebody is, or was, in a generation that this server knows nothing of. A second first
  // generation beside it would restart the job from zero (P19).
  const bool history = std::ranges::any_of(workers, [](const auto& entry) {
    return entry.second.report.word.generation.value != 0 || entry.second.report.held.valid();
  });
  return installed || ending || relearning || history;
}

// The first generation waits for all the workers that the user asked for, since there is no state
// yet to be saved by starting with fewer. The wait has a fixed end: one that each newcomer moved
// could go on for ever, and one that only newcomers looked at would not end after the last of them.
void Membership::State::FormFirst() {
  if (FirstRoundIsOver()) {
    return;
  }
  const std::vector<const Worker*> ready = Newcomers();
  const int size = static_cast<int>(ready.size());
  if (size < (now >= PatienceEnds() ? spec.min_np : spec.np)) {
    return;
  }
  if (!NumberLeft()) {
    EndWithoutNumbers("generation numbers");
    return;
  }
  std::vector<Candidate> candidates;
  if (size < spec.np) {
    Say(Severity::kWarning,
        StrCat("begins with ", size, " of ", spec.np, " workers (-np) after ",
               FormatDuration(spec.start_timeout), " (--start-timeout); ", Missing(CurrentWait())));
  }
  for (const Worker* worker : ready) {
    if (std::ssize(candidates) == spec.np) {
      break;
    }
    candidates.push_back(CandidateOf(*worker, -1));
  }
  Roster roster{.id = {},
                .kind = GenerationKind::kInstalled,
                .parent = {},
                .resume = {},
                .entries = AssignRanks(std::move(candidates))};
  roster.id = {incarnation, IssueNumber(), RosterDigest(roster)};
  Install(std::move(roster));
}

namespace {
// The workers of the first round, by how they stand.
struct FirstRound {
  int starting = 0, joined = 0, left = 0, crashed = 0, killed = 0;
  std::set<std::pair<int, int32_t>> slots;  // that had a worker
  // Equal ends are told once, with all their places.
  std::map<std::string, std::vector<std::string>> ends;
};
std::string Tell(const FirstRound& round) {
  std::string text;
  for (const auto& [how, who] : round.ends) {
    text += StrCat(text.empty() ? "" : "; ", SomeNames(who), ": ", how);
  }
  return text;
}
}  // namespace

// A program that ends before it ever joined: all with success, it simply does not use the runtime;
// with a failure, it would fail again. A mixture can never form a generation of all.
void Membership::State::CheckFirstRound() {
  if (FirstRoundIsOver()) {
    return;
  }
  FirstRound round;
  for (const auto& [id, worker] : workers) {
    const WorkerReport& report = worker.report;
    round.slots.insert({worker.host, report.slot});
    if (!worker.dead()) {
      // Of those that went with their agent nothing will be heard any more.
      const bool present = id.agent == hosts[static_cast<size_t>(worker.host)].agent;
      (report.joined ? round.joined : round.starting) += present ? 1 : 0;
    } else if (!report.joined && report.exit && !report.released) {
      (report.exit->ok() ? round.left : report.exit->signalled ? round.killed : round.crashed) += 1;
      std::vector<std::string>& places = round.ends[ToString(*report.exit)];
      // A killed program may have been started again, and killed again, in the same place.
      const std::string place =
          StrCat(hosts[static_cast<size_t>(worker.host)].spec.name, ":", report.slot);
      if (std::ranges::find(places, place) == places.end()) {
        places.push_back(place);
      }
    }
  }
  const int slots_ended = static_cast<int>(first_deaths.size());
  const bool all_ended = slots_ended >= spec.np && round.joined == 0;
  // Equal crashes are told together, also those on hosts that are not heard yet.
  const bool all_began = round.starting == 0 && std::ssize(round.slots) >= spec.np;
  const bool settled =
      all_began || all_ended || (first_crash && now >= *first_crash + kFirstCrashWindow);
  if (all_ended && round.crashed + round.killed == 0) {
    Say(Severity::kWarning,
        "every worker exited with code 0 and none joined the job through the runtime "
        "(elastic::Runtime::Run or Join, in C elastic_run or elastic_join): nothing was made "
        "elastic");
    End(static_cast<int>(JobExit::kFinished), "all workers exited with code 0", StopMode::kNone);
    return;
  }
  const bool keeps_dying = std::ranges::any_of(first_deaths, [&](const auto& slot) {
    return spec.no_progress_limit > 0 && slot.second >= spec.no_progress_limit;
  });
  const bool hopeless = round.crashed > 0 || all_ended || keeps_dying ||
                        (round.left > 0 && round.joined > 0 && round.starting == 0);
  if (hopeless && settled) {
    const bool mixture = round.left > 0 && round.crashed + round.killed == 0;
    End(static_cast<int>(JobExit::kWorkerFailure),
        StrCat(mixture ? "some workers joined and others exited without joining the job: "
                       : "ended before joining the job: ",
               Tell(round)),
        StopMode::kGraceful);
  }
}

}  // namespace elastic::internal
