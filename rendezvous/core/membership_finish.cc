#include <algorithm>

#include "rendezvous/base/planted.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// A member has returned for good and another one has committed past it, which will never be
// complete: told at once, since that one may wait for ever. And what a member's runtime has found.
bool Membership::State::EndIfProgramErred() {
  if (!installed || finished || ending) {
    return false;
  }
  const Worker* behind = nullptr;
  const Worker* ahead = nullptr;
  for (const Worker* worker : members) {
    const WorkerReport& report = worker->report;
    if (report.program_error) {
      End(static_cast<int>(JobExit::kWorkerFailure),
          StrCat("error of the program, found by ", NameOf(*worker), ": ", *report.program_error),
          StopMode::kGraceful);
      return true;
    }
    if (!worker->in_generation(installed->id)) {
      continue;
    }
    if (report.finished &&
        (behind == nullptr || report.finished->version < behind->report.finished->version)) {
      behind = worker;
    }
    if (ahead == nullptr || ahead->report.word.commits < report.word.commits) {
      ahead = worker;
    }
  }
  if (behind == nullptr || ahead->report.word.commits == 0) {
    return false;
  }
  const StateVersion reached{installed->id.number, ahead->report.word.commits};
  const Held& last = *behind->report.finished;
  if (!(last.version < reached)) {
    return false;
  }
  End(static_cast<int>(JobExit::kWorkerFailure),
      StrCat(NameOf(*behind), " returned with step ", last.step, ", version ",
             ToString(last.version), ", and ", NameOf(*ahead), " has committed version ",
             ToString(reached), ": all ranks must commit equally often before they return"),
      StopMode::kGraceful);
  return true;
}

// P29. All members of one generation have reported the same final version, each in the word of that
// generation. A member that died after its report has reported, so the record may be made.
void Membership::State::RecordIfFinished() {
  // In a graceful stop the ranks return after a step they have agreed on, and wait for the record.
  const bool in_time = !ending || ending->mode == StopMode::kGraceful;
  if (EndIfProgramErred() || !installed || finished || !in_time || !finish_seen) {
    return;
  }
  const Held* first = nullptr;
  for (const Worker* worker : members) {
    if (Planted(PlantedBug::kFinishRecordedEarly) && first != nullptr) {
      break;
    }
    if (!worker->in_generation(installed->id) || !worker->report.finished) {
      return;
    }
    const Held& state = *worker->report.finished;
    if (first == nullptr) {
      first = &state;
    } else if (state.version != first->version || state.digest != first->digest) {
      End(static_cast<int>(JobExit::kWorkerFailure),
          StrCat(NameOf(*members.front()), " returned with version ", ToString(first->version),
                 " and ", NameOf(*worker), " with ", ToString(state.version),
                 ", or with other bytes: all ranks must commit equally often before they return"),
          StopMode::kGraceful);
      return;
    }
  }
  finished = FinishRecord{installed->id, *first};
  recorded_at = now;
  PersistNow();
  publish_all = true;
  Say(Severity::kInfo,
      StrCat("finished: ",
             members.size() == 1 ? "its member" : StrCat("all ", members.size(), " members"),
             " returned with step ", first->step, ", version ", ToString(first->version)));
}

}  // namespace elastic::internal
