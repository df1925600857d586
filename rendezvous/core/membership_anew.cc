#include <algorithm>

#include "rendezvous/core/membership_state.h"

// P19 with --allow-restart-from-zero: instead of ending for want of the committed state, the job
// begins anew. Only programs that were never in a generation take part: of all others the memory
// may be that of a step that is lost. Turned down: to tell them to take their initial values again;
// what a program changed besides its state nobody could take back.
namespace elastic::internal {

// When no holder can ever come back at once; when one might, after the usual patience.
bool Membership::State::BeginsAnew(const Plan& plan) const {
  const bool waits_for_state = plan.wait.reason == WaitReason::kResumeVersion;
  return spec.allow_restart_from_zero &&
         (anew_since || plan.state_lost || (waits_for_state && now >= PatienceEnds()));
}

// A holder that comes back before the new generation is formed is welcome: this only adds another
// way to go on.
void Membership::State::BeginAnew() {
  if (!anew_since) {
    const Held newest = NewestHeld();
    const std::string lost =
        newest.valid() ? StrCat(", whose newest step was ", newest.step, ",") : std::string();
    Say(Severity::kWarning, StrCat("no copy of the committed state", lost,
                                   " is left: the job begins anew from the programs' initial "
                                   "state (--allow-restart-from-zero)"));
    anew_since = now;
  }
  for (auto& [id, worker] : workers) {
    const bool fresh = worker.rank < 0 && !worker.report.held.valid() && !Named(worker);
    const bool holder = lineage.OnLine(worker.report.held.version, installed->id.number);
    if (!fresh && !holder && !worker.dead() && Reachable(worker) && removed.insert(id).second) {
      MarkLost(worker, "is started anew with its initial state");
    }
  }
}

}  // namespace elastic::internal
