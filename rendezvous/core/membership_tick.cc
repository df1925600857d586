#include <algorithm>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

bool Membership::State::Silent(const Host& host) const {
  const bool quiet = now >= LastHeard(host.agent) + spec.heartbeat_timeout;
  const bool deaf = host.directive_sequence > host.last.acked_directive &&
                    now >= host.ack_reference + spec.heartbeat_timeout;
  return now >= judges_from && (quiet || deaf);
}

std::string Membership::State::WhyLost(const Host& host) const {
  if (!host.connection) {
    return StrCat("host ", host.spec.name, " is lost: its agent is gone");
  }
  const bool silent = now >= LastHeard(host.agent) + spec.heartbeat_timeout;
  return StrCat("host ", host.spec.name, silent ? " is silent for " : " acknowledges nothing for ",
                FormatDuration(spec.heartbeat_timeout),
                " (--heartbeat-timeout) and is not counted any more");
}

// P20, P22. A host is counted while its reports come and its acknowledgements follow what it is
// told: a link that is cut in one direction shows only in the second.
void Membership::State::UpdateCounted() {
  for (Host& host : hosts) {
    bool counted = host.reported;
    if (host.connection) {
      counted = counted && !Silent(host);
    } else {
      counted = counted && host.stream_ended && !AccusedHost(host) &&
                now < *host.stream_ended + kStreamReturnWindow;
    }
    if (host.counted && !counted) {
      host.reported = false;  // only a new report makes it count again
      if (!ending && !finished) {
        Say(Severity::kWarning, WhyLost(host));
      }
      publish_all = true;
    }
    host.counted = counted;
  }
}

void Membership::State::HostDeadlines(const std::function<void(Instant)>& at) const {
  for (const Host& host : hosts) {
    if (host.connection && host.counted) {
      at(LastHeard(host.agent) + spec.heartbeat_timeout);
      if (host.directive_sequence > host.last.acked_directive) {
        at(host.ack_reference + spec.heartbeat_timeout);
      }
    }
    if (!host.counted && host.agent.value != 0) {
      at(OrphansEnd(host.agent));
    }
    if (!host.connection && host.stream_ended) {
      at(*host.stream_ended + kStreamReturnWindow);
    }
  }
}

// Only times at which something may change, and only future ones: all that lies in the past has
// been acted upon by the step that came then.
std::optional<Instant> Membership::State::NextDeadline() const {
  std::optional<Instant> next;
  const auto at = [&](Instant time) {
    if (time > stepped && (!next || time < *next)) {
      next = time;
    }
  };
  if (ended) {
    return std::nullopt;
  }
  at(judges_from);
  if (launcher_gone) {
    at(*launcher_gone + kLauncherReturnWindow);
  }
  at(link_trusted_from);
  HostDeadlines(at);
  for (const Crashes& equal : crashes) {
    at(equal.due);
  }
  if (ending || finished) {
    at(GiveUpAt());
    return next;
  }
  at(started + spec.heartbeat_timeout);
  if (waiting.reason != WaitReason::kNone) {
    at(wait_due);
  }
  if (first_crash && !installed) {
    at(*first_crash + kFirstCrashWindow);
  }
  if (relearning || from_record) {
    at(RelearnLimit());
  }
  if (broken_since) {
    at(PatienceEnds());
  }
  if (!installed) {
    return next;
  }
  if (!all_entered) {
    at(installed_at + spec.entry_timeout);
    at(broken_since.value_or(installed_at) + kSpawnHold);
  }
  if (broken_since) {
    at(*broken_since + kSpawnHold);
    at(*broken_since + kAccusationSettle);
    for (const auto& [id, worker] : workers) {  // P11 of members, P10 of a prepared successor's
      if (!worker.dead() && !Reachable(worker)) {
        at(OrphansEnd(id.agent));
      }
    }
  }
  return next;
}

}  // namespace elastic::internal
