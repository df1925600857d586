#include <algorithm>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// A second request only makes it quicker; the exit code of the first stands.
void Membership::State::OnStopRequested(const StopRequested& event) {
  if (!ending) {
    End(event.exit_code, event.reason, event.mode);
    return;
  }
  if (event.mode == StopMode::kImmediate && ending->mode != StopMode::kImmediate) {
    ending->mode = StopMode::kImmediate;
    ending->give_up = now + kKillAllowance + kStopSlack;
    publish_all = true;
  }
}

void Membership::State::End(int exit_code, std::string reason, StopMode mode) {
  if (ending) {
    return;
  }
  TellCrashes(true);
  newest_at_end = NewestHeld();
  const Duration grace = mode == StopMode::kImmediate ? kKillAllowance : spec.grace_period;
  ending = Ending{.exit_code = exit_code,
                  .reason = std::move(reason),
                  .mode = mode == StopMode::kUnspecified ? StopMode::kGraceful : mode,
                  .give_up = now + grace + kStopSlack};
  publish_all = true;
}

// When a wait that only the outside can end has lasted long enough.
Instant Membership::State::PatienceEnds() const {
  if (!FirstRoundIsOver()) {
    return started + spec.start_timeout;
  }
  return anew_since.value_or(broken_since.value_or(now)) + spec.elastic_timeout;
}

void Membership::State::GiveUpWaiting() {
  if (ending || !broken_since || now < PatienceEnds()) {
    return;
  }
  const Wait wait = CurrentWait();
  if (!FirstRoundIsOver()) {
    const int ready = static_cast<int>(Newcomers().size());
    End(static_cast<int>(JobExit::kTooFewWorkers),
        StrCat("gave up after ", FormatDuration(spec.start_timeout),
               " (--start-timeout): ", Describe(wait, now),
               spec.min_np < spec.np
                   ? StrCat("; ", spec.min_np, " workers that are ready would be ",
                            "enough (--min-np), have ", ready)
                   : std::string()),
        StopMode::kGraceful);
    return;
  }
  const bool state = wait.reason == WaitReason::kResumeVersion;
  End(static_cast<int>(state ? JobExit::kStateLost : JobExit::kTooFewWorkers),
      StrCat("gave up after ", FormatDuration(spec.elastic_timeout),
             " (--elastic-timeout): ", Describe(wait, now), state ? kZeroHint : ""),
      StopMode::kGraceful);
}

// A finished job's programs may still save; they end with their agents, and those with the
// launcher.
void Membership::State::EndWithoutLauncher() {
  if (launcher_gone && !ending && !finished && now >= *launcher_gone + kLauncherReturnWindow) {
    End(static_cast<int>(JobExit::kWorkerFailure),
        StrCat("elastic-run is gone for ", FormatDuration(kLauncherReturnWindow)),
        StopMode::kGraceful);
  }
}

// When an end that has been decided waits for nobody any more.
Instant Membership::State::GiveUpAt() const {
  return ending && ending->give_up ? *ending->give_up
                                   : recorded_at + spec.grace_period + kStopSlack;
}

// A member's host that this server has never heard, but its predecessor had: it must still be told.
bool Membership::State::MayReturn(int host) const {
  return from_record && hosts[static_cast<size_t>(host)].agent.value == 0 &&
         (relearnt_in_part ||
          std::ranges::any_of(members, [&](const Worker* worker) { return worker->host == host; }));
}

// The job is over when nothing of it can still be running: every agent has seen the last orders and
// reported all its workers reaped, or is gone itself (its guardian ends what it left).
void Membership::State::EndWhenGone() {
  if (ended || (!ending && !finished)) {
    return;
  }
  const Instant give_up = GiveUpAt();
  for (size_t i = 0; i < hosts.size(); ++i) {
    const Host& host = hosts[i];
    const bool speaks = host.connection && host.counted;
    // After the record a program may still evaluate or save for as long as it likes; only hosts
    // that are not heard any more are given up.
    if (now >= give_up && (ending || !speaks)) {
      continue;
    }
    if (host.connection) {
      const bool told = host.final_sequence != 0 && host.reported &&
                        host.last.acked_directive >= host.final_sequence;
      const bool quiet = std::ranges::all_of(workers, [&](const auto& entry) {
        // A dead one may still be on its way out: printing, or saving within its grace period.
        return entry.first.agent != host.agent ||
               (entry.second.dead() && entry.second.exit_counted);
      });
      if (!told || !quiet) {
        return;
      }
    } else if (host.stream_ended ? now < *host.stream_ended + kStreamReturnWindow
                                 : MayReturn(static_cast<int>(i))) {
      return;
    }
  }
  ended = true;
  if (!ending) {
    ending = Ending{.exit_code = static_cast<int>(JobExit::kFinished), .reason = "finished"};
  }
  Emit(EndJob{ending->exit_code, ending->reason});
}

}  // namespace elastic::internal
