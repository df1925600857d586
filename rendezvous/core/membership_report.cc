#include <algorithm>
#include <csignal>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// A report is the agent's whole state (P24): the newest one replaces what was known of its workers.
void Membership::State::OnReported(const AgentReported& event) {
  Host* host = HostOf(event.connection);
  const AgentReport& report = event.report;
  if (host == nullptr || report.agent != host->agent || report.sequence <= host->last.sequence) {
    return;  // an older life, or a repeated or late message
  }
  if (relearning && report.server != incarnation) {
    return;  // made before this server was heard: it lacks what is to be learnt
  }
  const int index = static_cast<int>(host - hosts.data());
  const GenerationNumber highest = HighestKnown(*host);
  if (RefuseStray(*host, report, highest)) {
    return;
  }
  host->heard_here = true;
  heard[host->agent] = now;
  // A larger number is one of this server's predecessor.
  const uint64_t acked =
      report.acked_directive <= host->directive_sequence ? report.acked_directive : 0;
  if (acked > host->last.acked_directive) {
    host->ack_reference = now;
  }
  host->last.sequence = report.sequence;
  host->last.acked_directive = std::max(host->last.acked_directive, acked);
  host->last.closed = std::max(host->last.closed, report.closed);
  host->last.copies = report.copies;
  host->reported = true;
  publish_hosts.insert(index);

  LearnNumbers(report, highest);
  if (relearning) {
    Learn(*host, report);
  } else {
    ApplyReport(*host, report);
  }
}

void Membership::State::ApplyReport(Host& host, const AgentReport& report) {
  const int index = static_cast<int>(&host - hosts.data());
  CollectAccusations(report);
  for (const WorkerReport& worker : report.workers) {
    if (worker.incarnation.agent == host.agent) {
      ApplyWorker(worker, index);
    }
  }
  TellCrashes(false);
  for (const Mark& mark : report.marks) {
    // An agent marks a worker before it can report it dead, and after a restart of the server
    // agents know of losses that it has not marked itself.
    if (installed && installed->Find(mark.dead) != nullptr && !Marked(mark.dead) &&
        !Find(mark.dead)->dead()) {
      MarkLost(*Find(mark.dead), "is lost", true);
    }
  }
  ForgetAbsent(host, index);
  LearnBoundaries(report);
  TakeStore(host, report);
  if (report.spawn_error && !ending) {
    End(static_cast<int>(JobExit::kUsage), *report.spawn_error, StopMode::kGraceful);
  }
}

// A broken connection accuses its far end only if the reporter's generation was whole (P18): once
// it is known to be broken, survivors close connections themselves.
void Membership::State::CollectAccusations(const AgentReport& report) {
  if (!installed || finished || Broken()) {
    return;
  }
  for (const WorkerReport& worker : report.workers) {
    for (const Accusation& accusation : worker.accusations) {
      if (accusation.generation == installed->id &&
          installed->Find(accusation.accused) != nullptr &&
          installed->Find(worker.incarnation) != nullptr) {
        accusations.insert({worker.incarnation, accusation.accused});
      }
    }
  }
}

void Membership::State::ApplyWorker(const WorkerReport& report, int host) {
  Worker& worker = workers[report.incarnation];
  if (worker.dead() && report.life != WorkerLife::kDead) {
    return;  // death is final (P13)
  }
  worker.host = host;
  worker.report = Believed(report, worker);
  worker.reported = true;
  worker.seen_in = hosts[static_cast<size_t>(host)].last.sequence;
  if (worker.copy_dropped) {
    worker.report.held = {};
  }
  if (installed && worker.report.finished && worker.in_generation(installed->id) &&
      installed->Find(report.incarnation) != nullptr) {
    finish_seen = true;
  }
  if (worker.dead()) {
    NoteDeath(worker);
    CountExit(worker);
  }
}

// Some roster that may still matter names it.
bool Membership::State::Named(const Worker& worker) const {
  const WorkerIncarnation id = worker.report.incarnation;
  return (installed && installed->Find(id) != nullptr) || (parent && parent->Find(id) != nullptr) ||
         std::ranges::any_of(prepared,
                             [&](const Roster& next) { return next.Find(id) != nullptr; });
}

// A word that names a prepared successor shows that its boundary was passed: from now on it is the
// installed generation, and the one before can never commit again (P25).
void Membership::State::LearnBoundaries(const AgentReport& report) {
  for (const WorkerReport& reported : report.workers) {
    const Worker* worker = Find(reported.incarnation);
    if (worker == nullptr) {
      continue;  // of another life of its agent, which this one has no say about
    }
    for (size_t i = 0; i < prepared.size(); ++i) {
      if (worker->in_generation(prepared[i].id) &&
          prepared[i].Find(reported.incarnation) != nullptr) {
        InstallLearned(i, *worker);
        break;
      }
    }
    if (installed && installed->kind == GenerationKind::kPrepared &&
        worker->in_generation(installed->id)) {
      LearnResume(*worker);
    }
  }
}

// An agent names each of its workers from the spawn on until it has reaped it and was told, by this
// server or its predecessor, to forget it. One that a report does not name is dead, and its copy is
// gone. The entry stays while a roster names it: its death still matters for the next generation.
void Membership::State::ForgetAbsent(Host& host, int index) {
  for (auto at = workers.lower_bound({host.agent, 0});
       at != workers.end() && at->first.agent == host.agent;) {
    Worker& worker = at->second;
    // ApplyWorker has just marked every reported one by this sequence number.
    if (worker.seen_in == host.last.sequence) {
      ++at;
      continue;
    }
    if (!worker.dead()) {
      worker.reported = true;
      worker.report.life = WorkerLife::kDead;
      worker.death_noted = worker.exit_counted = true;
    }
    worker.copy_dropped = true;
    worker.report.held = {};
    at = Named(worker) ? std::next(at) : workers.erase(at);
    publish_hosts.insert(index);
  }
}

void Membership::State::CountExit(Worker& worker) {
  const WorkerReport& report = worker.report;
  const bool moved = report.cause == DeathCause::kOfferedAgain;
  if (worker.exit_counted || (!report.exit && !moved)) {
    return;
  }
  worker.exit_counted = true;
  if (moved) {
    return;
  }
  const bool crashed_after_end = finished && !report.exit->ok();
  if (crashed_after_end) {
    Say(Severity::kWarning, StrCat(NameOf(worker), " ended with ", ToString(*report.exit),
                                   " after the job was recorded finished; its result stands"));
  }
  if (!installed && !report.joined && !report.released) {
    ++first_deaths[{worker.host, report.slot}];
    if (!report.exit->ok() && !first_crash) {
      first_crash = now;
    }
  }
}

void Membership::State::NoteDeath(Worker& worker) {
  const WorkerReport& report = worker.report;
  CompleteCause(worker);
  if (worker.death_noted || ending || finished || report.released) {
    worker.death_noted = true;
    return;
  }
  if (report.cause == DeathCause::kOfferedAgain) {
    worker.death_noted = true;
    Say(Severity::kInfo, StrCat(NameOf(worker), " ", DeathText(worker)));
    return;
  }
  // Equal crashes before the first generation are told together, when the job ends by them.
  if (!report.exit || (!installed && !report.joined)) {
    return;
  }
  worker.death_noted = true;
  std::string text = DeathText(worker);
  if (report.exit->ok() && report.joined) {
    text +=
        ", which counts as a failure: a program ends by returning from Runtime::Run (C: "
        "elastic_run), or "
        "calls "
        "elastic_finish before it exits";
  }
  NoteCrash(worker, std::move(text));
}

std::string Membership::State::DeathText(const Worker& worker) const {
  const WorkerReport& report = worker.report;
  if (report.cause == DeathCause::kStopped) {
    return "was stopped (state T) and killed";
  }
  if (report.cause == DeathCause::kOfferedAgain) {
    return "is back and offered again as a newcomer";
  }
  if (!report.exit) {
    return "died";
  }
  // Not its own failure, nor the kernel's, as the bare signal would suggest.
  const bool killed = *report.exit == ExitStatus{.signalled = true, .code = SIGKILL};
  if (killed && report.cause == DeathCause::kMarkedByServer) {
    return StrCat("was killed by its agent",
                  worker.given_up.empty() ? std::string() : ": it " + worker.given_up);
  }
  if (!report.joined) {
    return StrCat("ended before it joined the job: ", ToString(*report.exit));
  }
  return report.exit->ok() ? "exited with code 0 in mid-training"
                           : StrCat("died: ", ToString(*report.exit));
}

}  // namespace elastic::internal
