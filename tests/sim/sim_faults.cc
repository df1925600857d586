// Faults of every party, and what they do to it. When and at whom: sim_aim.cc.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

namespace {

constexpr bool OnWorker(Fault fault) { return fault <= Fault::kNoAnswer; }

}  // namespace

bool Sim::Inject(Fault fault, const Victim& victim) {
  const bool restarts_slot = fault == Fault::kSlowStart;
  if (restarts_slot     ? !victim.host
      : OnWorker(fault) ? victim.process == nullptr
                        : (AtServer(fault) ? !server_.core || server_.paused : !victim.host)) {
    return false;
  }
  const Injected by{fault, ++injected_};
  Trace("FAULT ", NameOf(fault));
  Count(StrCat("fault ", NameOf(fault)));
  only_workers_lost_ = only_workers_lost_ && OnWorker(fault);
  // Short; longer than a heartbeat time-out, but not than the orphan limit; any.
  const uint64_t kind = rng_.Below(3);
  const Duration length = kind == 0   ? Between(10'000, 2'500'000)
                          : kind == 1 ? Between(2'100'000, 5'500'000)
                                      : Between(10'000, 12'000'000);
  if (restarts_slot) {
    Host& host = hosts_[static_cast<size_t>(*victim.host)];
    host.slow_next = true;
    host.slow_by = by;
    // The next process is one in the place of this.
    for (auto& [id, process] : processes_) {
      if (process.host == *victim.host && process.life == host.life && process.alive) {
        Die(process, {true, 9});
        break;
      }
    }
  } else if (OnWorker(fault)) {
    InjectAtWorker(by, *victim.process, length);
  } else if (AtServer(fault)) {
    InjectAtServer(by, length);
  } else {
    InjectAtHost(by, *victim.host, length);
  }
  return true;
}

void Sim::InjectAtWorker(Injected by, Process& process, Duration length) {
  if (process.core) {
    Count(StrCat("victim phase ", static_cast<int>(process.core->phase())));
  }
  switch (by.fault) {
    case Fault::kWorkerCrash:
      Hit(by, Awaits(process));
      Die(process, {true, 9});
      return;
    case Fault::kWorkerLeave:
      Hit(by, Awaits(process));
      Leave(process);
      return;
    case Fault::kWorkerStop: StopWorker(process, by); return;
    case Fault::kEdgeReset: ResetEdges(process, by); return;
    case Fault::kDialFails: process.no_dial = {now_ + length, by}; return;
    default: process.no_answer = {now_ + length, by}; return;
  }
}

void Sim::InjectAtHost(Injected by, int host, Duration length) {
  switch (by.fault) {
    case Fault::kAgentCrash:
    case Fault::kHostLost:
      Hit(by, Awaits(host));
      EndAgentProcess(host, by.fault == Fault::kHostLost);
      return;
    case Fault::kAgentPause: PauseAgent(host, length, by); return;
    case Fault::kGuardianStop: StopGuardian(host, length / 4, by); return;
    case Fault::kClockJump: Suspend(host, length, by); return;
    default: Cut(host, length, by); return;
  }
}

void Sim::StopWorker(Process& process, Injected by) {
  process.paused = true;
  process.paused_by = by;
  const WorkerIncarnation id = process.id;
  if (rng_.Chance(1, 4)) {  // continued before anybody acted on it
    At(Between(1000, 200'000), [this, id] {
      Process& stopped = *Find(id);
      if (stopped.paused && !hosts_[static_cast<size_t>(stopped.host)].suspended) {
        stopped.paused = false;
        DrainBacklog(stopped);
      }
    });
  }
  ToAgent(process.host, process.life, Between(20'000, 120'000), [this, id, at = process.host] {
    if (Find(id)->alive && Find(id)->paused && Find(id)->core &&
        Find(id)->paused_by.fault == Fault::kWorkerStop) {
      AgentStep(at, agent_event::BeatMissed{id, 'T'});
    }
  });
}

void Sim::ResetEdges(Process& process, Injected by) {
  for (auto& [number, peers] : process.edges) {
    if (!peers.empty() && rng_.Chance(1, 2)) {
      Hit(by, Awaits(process));
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

void Sim::PauseAgent(int index, Duration length, Injected by) {
  Host& host = hosts_[static_cast<size_t>(index)];
  host.paused = true;
  host.paused_by = by;
  At(length, [this, index, life = host.life] {
    const Host& paused = hosts_[static_cast<size_t>(index)];
    if (paused.life == life && !paused.suspended) {
      WakeAgent(index);
    }
  });
}

void Sim::WakeAgent(int host) {
  if (std::exchange(hosts_[static_cast<size_t>(host)].paused, false)) {
    for (auto& action : std::exchange(hosts_[static_cast<size_t>(host)].backlog, {})) {
      action();
    }
  }
}

// All its processes stand still, and time has passed when they go on. Whose deadline has passed is
// gone before anything else moves: its own runtime's thread and the guardian both look for it.
void Sim::Suspend(int index, Duration length, Injected by) {
  Host& host = hosts_[static_cast<size_t>(index)];
  host.suspended = host.paused = true;
  host.paused_by = by;
  host.guardian_stopped = {now_ + length, by};
  for (auto& [id, process] : processes_) {
    if (process.host == index && process.alive) {
      process.paused = true;
      process.paused_by = by;
    }
  }
  At(length, [this, index, life = host.life] {
    Host& woken = hosts_[static_cast<size_t>(index)];
    if (woken.life != life || !woken.suspended) {
      return;
    }
    Trace("host ", woken.name, " goes on");
    woken.suspended = false;
    for (auto& [id, process] : processes_) {
      if (process.host != index || process.life != life || !process.alive) {
        continue;
      }
      process.paused = false;
      if (woken.kill_at && *woken.kill_at <= now_) {
        Die(process, {true, 9});
      } else {
        DrainBacklog(process);
      }
    }
    WakeAgent(index);
  });
}

// What it was told to do waits; an agent that does not hear of it for long ends.
void Sim::StopGuardian(int index, Duration length, Injected by) {
  Host& host = hosts_[static_cast<size_t>(index)];
  host.guardian_stopped = {now_ + length, by};
  if (length < kGuardianSilenceLimit) {
    return;
  }
  ToAgent(index, host.life, kGuardianSilenceLimit + Between(0, 100'000), [this, index, by] {
    Hit(by, Awaits(index));
    Count("agent ends for want of its guardian");
    EndAgentProcess(index, false);
  });
}

void Sim::Cut(int index, Duration length, Injected by) {
  Host& host = hosts_[static_cast<size_t>(index)];
  const Until until{now_ + length, by};
  const bool partition = by.fault == Fault::kPartition || by.fault == Fault::kPartitionOneWay;
  const bool one_way = by.fault == Fault::kPartitionOneWay;
  const bool out = !one_way || rng_.Chance(1, 2);
  const bool in = !one_way || !out;
  // Every third partition is one of two hosts only, which the server does not see.
  const int peer = static_cast<int>(rng_.Below(hosts_.size()));
  const bool peers_only = partition && peer != index && rng_.Chance(1, 3);
  if (partition ? out && !peers_only : by.fault != Fault::kCutDown) {
    host.cut_up = until;
  }
  if (partition ? in && !peers_only : by.fault != Fault::kCutUp) {
    host.cut_down = until;
  }
  for (size_t i = 0; partition && i < hosts_.size(); ++i) {
    const int other = static_cast<int>(i);
    if (other == index || (peers_only && other != peer)) {
      continue;
    }
    if (out) {
      host.cut_to[other] = until;
    }
    if (in) {
      hosts_[i].cut_to[index] = until;
    }
  }
}

void Sim::InjectAtServer(Injected by, Duration length) {
  if (by.fault == Fault::kServerPause) {
    server_.paused = true;
    server_.paused_by = by;
    At(length / 4, [this, life = server_.life] {
      if (server_.life == life) {
        WakeServer();
      }
    });
    return;
  }
  Hit(by, server_.under_way > 0);
  server_.stopped_by = by;
  if (!rng_.Chance(1, 2) || !BeginDrain()) {
    RestartServer(Between(20'000, 1'500'000));
  }
}

void Sim::RestartServer(Duration after) {
  StopServer();
  At(after, [this] { StartServer(); });
}

void Sim::WakeServer() {
  if (std::exchange(server_.paused, false)) {
    for (auto& action : std::exchange(server_.backlog, {})) {
      action();
    }
  }
}

}  // namespace elastic::internal::sim
