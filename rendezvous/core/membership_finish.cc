#include <algorithm>

#include "rendezvous/base/planted.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// P29. All members of one generation have reported the same final version, each in the word of that
// generation. A member that died after its report has reported, so the record may be made.
void Membership::State::RecordIfFinished() {
  if (!installed || finished || ending || !finish_seen) {
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
