// Which faults met which stage of the protocol: a fault counts only where it delayed, dropped or
// killed something that the stage was waiting for.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

const char* NameOf(Fault fault) {
  static constexpr const char* kNames[] = {
      "worker crash", "worker stop", "worker leave", "slow start",  "edge reset",
      "dial fails",   "no answer",   "agent crash",  "agent pause", "guardian stop",
      "host lost",    "clock jump",  "cut up",       "cut down",    "cut both",
      "partition",    "one-way",     "server crash", "server pause"};
  static_assert(std::size(kNames) == kFaults);
  return kNames[static_cast<size_t>(fault)];
}

const char* NameOf(Stage stage) {
  static constexpr const char* kNames[] = {"running",   "prepared",  "marked", "forming",
                                           "part ent.", "finishing", "away"};
  static_assert(std::size(kNames) == kStages);
  return kNames[static_cast<size_t>(stage)];
}

const char* NeverMeets(Fault fault, Stage stage) {
  const bool edges_needed = stage == Stage::kRunning || stage == Stage::kPrepared ||
                            stage == Stage::kEnteredInPart || stage == Stage::kServerAway;
  const bool dials = stage == Stage::kPrepared || stage == Stage::kEnteredInPart;
  const bool starts =
      stage == Stage::kRunning || stage == Stage::kForming || stage == Stage::kServerAway;
  switch (fault) {
    case Fault::kEdgeReset: return edges_needed ? nullptr : "it uses no data connection";
    case Fault::kDialFails:
    case Fault::kNoAnswer: return dials || stage == Stage::kServerAway ? nullptr : "nobody dials";
    case Fault::kSlowStart: return starts ? nullptr : "it waits for no process to start";
    default: return nullptr;
  }
}

namespace {
// What that stage waits for is still to come from this worker.
bool Owes(const WorkerView& worker, const JobView& view, Stage stage) {
  const WorkerReport& report = worker.report;
  const bool of_it = report.word.generation == view.generation.number;
  const bool member = worker.rank >= 0 && report.life != WorkerLife::kDead;
  const bool done = stage == Stage::kEnteredInPart       ? of_it && report.entered
                    : view.state == JobState::kFinishing ? report.finished.has_value()
                                                         : false;
  return (stage == Stage::kFinishing ? report.life != WorkerLife::kDead : member) && !done;
}
}  // namespace

// What each stage waits for:
//   running    every member's next commit, a missing worker's replacement, and that heartbeats are
//              answered (P23)
//   prepared   the members' and the newcomers' edges and contributions (P25)
//   marked     the answer of every counted host with a member or a newcomer of a prepared successor
//   forming    agents and workers that are not there or not ready, hosts that are silent (P10, P11)
//   part ent.  members that have not entered
//   finishing  members that have not reported; after the record, those that have not left
//   away       the server, the first report of every agent to a new one, and what was waited for
//              when it went: training goes on without it
void Sim::NoteAwaited(const JobView& view) {
  awaited_.workers.clear();
  awaited_.hosts.clear();
  const Roster* roster = ghost_.Find(view.generation.number);
  const bool prepared = journal_ && !journal_->prepared.empty();
  const auto await = [&](WorkerIncarnation name) {
    const Process* process = Find(name);
    if (process != nullptr && process->alive) {
      awaited_.workers.insert(process->id);
      awaited_.hosts.insert(process->host);
    }
  };
  const auto await_newcomers = [&] {
    for (const auto& [id, process] : processes_) {
      if (roster == nullptr || EntryOf(*roster, id) == nullptr) {
        await(id);
      }
    }
  };
  switch (view.state) {
    case JobState::kStarting:
      awaited_.stage = Stage::kForming;
      await_newcomers();
      break;
    case JobState::kRunning:
      awaited_.stage = prepared ? Stage::kPrepared : Stage::kRunning;
      if (prepared || view.size < view.np) {
        await_newcomers();
      }
      break;
    case JobState::kEntering: awaited_.stage = Stage::kEnteredInPart; break;
    case JobState::kReforming: {
      const WaitReason reason = view.wait.reason;
      const bool marked = reason == WaitReason::kFenceAnswers || reason == WaitReason::kCommitting;
      awaited_.stage = marked ? Stage::kMarked : Stage::kForming;
      if (!marked) {
        await_newcomers();
      }
      break;
    }
    default: awaited_.stage = Stage::kFinishing; break;
  }
  for (const WorkerView& worker : view.workers) {
    if (Owes(worker, view, awaited_.stage)) {
      await(worker.report.incarnation);
    }
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    if (awaited_.stage == Stage::kForming) {
      awaited_.hosts.insert(host);
    } else if (awaited_.stage == Stage::kMarked && server_.answered[host] >= server_.closed) {
      awaited_.hosts.erase(host);
    }
  }
}

Stage Sim::StageNow(bool ignore_pause) const {
  const bool away = !server_.core || !server_.settled || (server_.paused && !ignore_pause);
  return away ? Stage::kServerAway : awaited_.stage;
}

bool Sim::Awaits(const Process& process) const {
  if (!process.alive) {
    return false;
  }
  if (StageNow() == Stage::kServerAway && !server_.heard.contains(process.host) && process.core) {
    return true;
  }
  const bool host = awaited_.stage != Stage::kMarked || awaited_.hosts.contains(process.host);
  const bool starting = awaited_.stage == Stage::kForming || awaited_.stage == Stage::kRunning;
  // Spawned since the server's newest step.
  return host && (awaited_.workers.contains(process.id) || (starting && !process.core));
}

bool Sim::Awaits(int host) const {
  return awaited_.hosts.contains(host) ||
         (StageNow() == Stage::kServerAway && !server_.heard.contains(host));
}

void Sim::Hit(Injected by, bool awaited) {
  const bool own_pause = by.fault == Fault::kServerPause;
  const Stage stage = StageNow(own_pause);
  if (by.fault == Fault::kCount || !awaited || job_ended_ || NeverMeets(by.fault, stage) ||
      !counted_.insert({by.id, stage}).second) {
    return;
  }
  ++result_.coverage[static_cast<size_t>(by.fault)][static_cast<size_t>(stage)];
}

// True, and counted, if what `host` sends or is sent is lost.
bool Sim::Broken(const Until& until, int host) {
  if (!Broken(until)) {
    return false;
  }
  Hit(until.by, Awaits(host));
  return true;
}

// A partition between data-plane peers breaks no connection: what is sent meanwhile comes later.
Duration Sim::Network(int from, int to, Duration delay, bool awaited) {
  const auto cut = hosts_[static_cast<size_t>(from)].cut_to.find(to);
  if (cut == hosts_[static_cast<size_t>(from)].cut_to.end() || !Broken(cut->second)) {
    return delay;
  }
  Hit(cut->second.by, awaited);
  return cut->second.end - now_ + delay;
}

}  // namespace elastic::internal::sim
