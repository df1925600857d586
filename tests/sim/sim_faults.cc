// Faults: at random steps, so that they fall where something happens, and of every party.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

namespace {

constexpr const char* kFaultNames[] = {
    "worker crash", "worker stop", "agent crash", "agent pause",    "host lost",
    "cut up",       "cut down",    "cut both",    "server restart", "server pause",
    "edge reset",   "dial fails",  "no answer",   "worker leave"};
static_assert(std::size(kFaultNames) == static_cast<size_t>(Fault::kCount));

}  // namespace

void Sim::MaybeFault() {
  if (faults_left_ <= 0 || job_ended_ || !rng_.Chance(1, fault_odds_)) {
    return;
  }
  // Workers die more often than anything else, as in life.
  const uint64_t pick = rng_.Below(2 * static_cast<uint64_t>(Fault::kCount));
  const Fault fault =
      pick < static_cast<uint64_t>(Fault::kCount) ? static_cast<Fault>(pick) : Fault::kWorkerCrash;
  --faults_left_;
  Inject(fault);
}

Process* Sim::PickProcess() {
  std::vector<Process*> alive;
  for (auto& [id, process] : processes_) {
    if (process.alive) {
      alive.push_back(&process);
    }
  }
  return alive.empty() ? nullptr : alive[rng_.Below(alive.size())];
}

std::optional<int> Sim::PickHost() {
  const int host = static_cast<int>(rng_.Below(hosts_.size()));
  return hosts_[static_cast<size_t>(host)].agent ? std::optional(host) : std::nullopt;
}

void Sim::StopWorker(Process& process) {
  process.paused = true;
  const WorkerIncarnation id = process.id;
  if (rng_.Chance(1, 4)) {  // continued before anybody acted on it
    At(Between(1000, 200'000), [this, id] {
      Process& stopped = *Find(id);
      stopped.paused = false;
      DrainBacklog(stopped);
    });
  }
  ToAgent(process.host, process.life, Between(20'000, 120'000), [this, id, at = process.host] {
    if (Find(id)->alive && Find(id)->paused && Find(id)->core) {
      AgentStep(at, agent_event::BeatMissed{id, 'T'});
    }
  });
}

void Sim::ResetEdges(Process& process) {
  for (auto& [number, peers] : process.edges) {
    if (!peers.empty() && rng_.Chance(1, 2)) {
      const WorkerIncarnation a = process.id, b = peers.begin()->first;
      for (const auto& [at, peer] : {std::pair{a, b}, std::pair{b, a}}) {
        ToProcess(at, Between(10, 2000),
                  [this, peer = peer, number = number, link = peers.begin()->second](Process& one) {
                    BreakEdge(one, peer, number, link);
                  });
      }
    }
  }
}

void Sim::PauseAgent(int host, Duration length) {
  hosts_[static_cast<size_t>(host)].paused = true;
  At(length, [this, at = host] {
    Host& paused = hosts_[static_cast<size_t>(at)];
    if (std::exchange(paused.paused, false)) {
      for (auto& action : std::exchange(paused.backlog, {})) {
        action();
      }
    }
  });
}

void Sim::CutLink(Fault fault, int host, Duration length) {
  Host& cut = hosts_[static_cast<size_t>(host)];
  cut.cut_up = cut.cut_up || fault != Fault::kCutDown;
  cut.cut_down = cut.cut_down || fault != Fault::kCutUp;
  At(length, [this, at = host] {
    hosts_[static_cast<size_t>(at)].cut_up = hosts_[static_cast<size_t>(at)].cut_down = false;
  });
}

void Sim::Inject(Fault fault) {
  const char* name = kFaultNames[static_cast<size_t>(fault)];
  const std::string state =
      server_.core ? std::to_string(static_cast<int>(server_.core->View(now_).state)) : "down";
  Process* process = PickProcess();
  const std::optional<int> host = PickHost();
  const bool on_worker = fault == Fault::kWorkerCrash || fault == Fault::kWorkerStop ||
                         fault == Fault::kWorkerLeave || fault == Fault::kEdgeReset ||
                         fault == Fault::kDialFails || fault == Fault::kNoAnswer;
  const bool on_server = fault == Fault::kServerRestart || fault == Fault::kServerPause;
  if (on_worker ? process == nullptr : on_server ? !server_.core : !host) {
    return;
  }
  Trace("FAULT ", name);
  Count(StrCat("fault ", name, " in job state ", state));
  if (on_worker && process->core) {
    Count(StrCat("victim phase ", static_cast<int>(process->core->phase())));
  }
  only_workers_lost_ = only_workers_lost_ && on_worker;
  // Short; longer than a heartbeat time-out, but not than the orphan limit; any.
  const uint64_t kind = rng_.Below(3);
  const Duration length = kind == 0   ? Between(10'000, 2'500'000)
                          : kind == 1 ? Between(2'100'000, 5'500'000)
                                      : Between(10'000, 12'000'000);
  switch (fault) {
    case Fault::kWorkerCrash: Die(*process, {true, 9}); return;
    case Fault::kWorkerStop: StopWorker(*process); return;
    case Fault::kWorkerLeave: Leave(*process); return;
    case Fault::kEdgeReset: ResetEdges(*process); return;
    case Fault::kDialFails: process->no_dial_until = now_ + length; return;
    case Fault::kNoAnswer: process->no_answer_until = now_ + length; return;
    case Fault::kAgentCrash: EndAgentProcess(*host, false); return;
    case Fault::kHostLost: EndAgentProcess(*host, true); return;
    case Fault::kAgentPause: PauseAgent(*host, length); return;
    case Fault::kCutUp:
    case Fault::kCutDown:
    case Fault::kCutBoth: CutLink(fault, *host, length); return;
    case Fault::kServerRestart:
      StopServer();
      At(Between(20'000, 1'500'000), [this] { StartServer(); });
      return;
    case Fault::kServerPause:
      server_.paused = true;
      At(length / 4, [this, life = server_.life] {
        if (server_.life == life && std::exchange(server_.paused, false)) {
          for (auto& action : std::exchange(server_.backlog, {})) {
            action();
          }
        }
      });
      return;
    case Fault::kCount: return;
  }
}

}  // namespace elastic::internal::sim
