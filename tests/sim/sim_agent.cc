// Agents, their guardians and their launcher.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

void Sim::StartAgent(int index) {
  Host& host = hosts_[static_cast<size_t>(index)];
  if (job_ended_ || host.agent) {
    return;
  }
  ++host.life;
  Trace("agent of ", host.name, " starts, life ", host.life);
  AgentSettings settings;
  settings.host = host.name;
  settings.slots = host.slots;
  settings.orphan_limit = spec_.orphan_limit;
  settings.grace_period = grace_;
  host.agent = std::make_unique<AgentCore>(settings, now_);
  host.paused = host.suspended = false;
  host.guardian_stopped = {};
  host.acknowledged = now_;
  host.reports.clear();
  host.backlog.clear();
  host.connection.reset();
  host.registered = false;
  host.incarnation = {};
  host.server_seen = {};
  host.kill_at.reset();
  host.wake_at.reset();
  host.claimed_closed = {};
  host.claimed_dead.clear();
  AgentStep(index, agent_event::CopiesServed{{"copies-" + host.name, 1}});
  Dial(index, host.life);
}

// The agent or its guardian is gone, or the whole host silently. Workers and copies go with it.
void Sim::EndAgentProcess(int index, bool silent) {
  Host& host = hosts_[static_cast<size_t>(index)];
  if (!host.agent) {
    return;
  }
  Trace("agent of ", host.name, " is gone", silent ? " silently" : "");
  host.agent.reset();
  const int life = host.life;
  if (host.connection && !silent && !Broken(host.cut_up)) {
    ToServer(Between(50, 3000), [this, id = *host.connection] {
      server_.connections.erase(id);
      ServerStep(AgentDisconnected{id});
    });
  }
  Duration last{0};
  for (auto& [id, process] : processes_) {
    if (process.host != index || process.life != life) {
      continue;
    }
    if (silent) {
      Die(process, {true, 9}, true);
      process.page_kept = false;
      continue;
    }
    const Duration delay = Between(500, 40'000);
    last = std::max(last, delay);
    At(delay, [this, id = id] {
      Process& victim = *Find(id);
      if (victim.alive) {
        Die(victim, {true, 9});
      }
      victim.page_kept = false;
    });
  }
  At(last + Between(50'000, 1'500'000), [this, index] { StartAgent(index); });
}

void Sim::Dial(int index, int life) {
  Host& host = hosts_[static_cast<size_t>(index)];
  if (!host.agent || host.life != life) {
    return;
  }
  At(Between(500, 20'000), [this, index, life] {
    Host& from = hosts_[static_cast<size_t>(index)];
    if (!from.agent || from.life != life || (from.connection && from.registered)) {
      return;
    }
    const auto again = [this, index, life] { Dial(index, life); };
    if (!server_.core || Broken(from.cut_up, index) || Broken(from.cut_down, index) ||
        server_.paused) {
      Hit(server_.core ? Injected{} : server_.stopped_by, true);
      At(Between(50'000, 200'000), again);
      return;
    }
    const ConnectionId id{++connections_};
    if (from.connection) {
      ToServer(Between(50, 1000), [this, old = *from.connection] {
        server_.connections.erase(old);
        ServerStep(AgentDisconnected{old});
      });
    }
    from.connection = id;
    from.registered = false;
    server_.connections[id] = {index, life};
    ToServer(Between(100, 2000), [this, index, id, previous = from.incarnation,
                                  seen = from.server_seen, replaces = from.life > 1] {
      const Host& at = hosts_[static_cast<size_t>(index)];
      ServerStep(AgentConnected{id, at.name, at.slots, previous, seen, replaces});
    });
    At(std::chrono::seconds(1), again);  // until it is registered
  });
}

void Sim::ToAgent(int index, int life, Duration delay, std::function<void()> action) {
  At(delay, [this, index, life, action = std::move(action)] {
    Host& host = hosts_[static_cast<size_t>(index)];
    if (!host.agent || host.life != life) {
      return;
    }
    if (host.paused) {
      Hit(host.paused_by, Awaits(index));
      host.backlog.push_back([this, index, life, action] {
        const Host& later = hosts_[static_cast<size_t>(index)];
        if (later.agent && later.life == life) {
          action();
        }
      });
      return;
    }
    action();
  });
}

PageReading Sim::Read(const Process& process) const {
  PageReading reading;
  reading.word = process.page.word;
  const auto found = process.page.identity.find(reading.word.generation);
  if (found != process.page.identity.end()) {
    reading.generation = found->second;
  }
  reading.held = process.page.held;
  reading.phase = process.core ? process.core->phase() : Phase::kStarting;
  reading.beats = process.page.beats;
  return reading;
}

void Sim::AgentStep(int index, const AgentEvent& event) {
  Host& host = hosts_[static_cast<size_t>(index)];
  if (!host.agent) {
    return;
  }
  const int life = host.life;
  Trace("agent ", host.name, " event ", event.index());
  ++result_.events;
  std::deque<AgentAction> queue;
  for (AgentAction& action : host.agent->Step(now_, event)) {
    queue.push_back(std::move(action));
  }
  while (!queue.empty() && host.agent && host.life == life) {
    const AgentAction action = std::move(queue.front());
    queue.pop_front();
    Carry(index, action, queue);
  }
  if (!host.agent || host.life != life) {
    return;
  }
  for (const std::string& text : host.agent->BrokenInvariants()) {
    Violate(StrCat("agent ", host.name, " ", text));
  }
  ScheduleAgentWake(index);
}

void Sim::ReadPages(int index) {
  for (const auto& [id, process] : processes_) {
    const Host& host = hosts_[static_cast<size_t>(index)];
    if (process.host == index && process.life == host.life && process.page_kept) {
      AgentStep(index, agent_event::PageRead{id, Read(process)});
    }
  }
}

void Sim::ScheduleAgentWake(int index) {
  Host& host = hosts_[static_cast<size_t>(index)];
  const std::optional<Instant> next = host.agent->NextDeadline();
  if (!next || (host.wake_at && *host.wake_at <= *next)) {
    return;
  }
  host.wake_at = *next;
  ToAgent(index, host.life, std::max(*next - now_, Duration{0}), [this, index] {
    hosts_[static_cast<size_t>(index)].wake_at.reset();
    ReadPages(index);
    AgentStep(index, agent_event::TimePassed{});
  });
}

void Sim::Bell(Process& process) {
  ToProcess(process.id, Between(10, 1500), [this](Process& woken) {
    if (woken.core) {
      Feed(woken, Look(woken));
    }
  });
}

void Sim::SendReport(int index) {
  Host& host = hosts_[static_cast<size_t>(index)];
  const AgentReport report = host.agent->MakeReport(now_);
  host.claimed_closed = std::max(host.claimed_closed, report.closed);
  for (const WorkerReport& worker : report.workers) {
    if (worker.life == WorkerLife::kDead) {
      host.claimed_dead.insert(worker.incarnation);
    }
  }
  if (!host.connection || !host.registered) {
    return;
  }
  host.reports.emplace(report.sequence, now_);
  Trace("  report ", report.sequence, " of ", host.name, ": closed ", report.closed.value,
        ", acks ", report.acked_directive);
  int copies = rng_.Chance(static_cast<uint64_t>(drop_percent_), 100) ? 0 : 1;
  copies += rng_.Chance(static_cast<uint64_t>(duplicate_percent_), 100) ? 1 : 0;
  for (int i = 0; i < copies; ++i) {
    const bool slow = duplicate_percent_ > 0 && rng_.Chance(1, 20);
    const Duration delay = slow ? Between(1000, 400'000) : Between(50, 3000);
    ToServer(delay, [this, index, id = *host.connection, report] {
      const bool lost = Broken(hosts_[static_cast<size_t>(index)].cut_up, index);
      if (lost || !server_.connections.contains(id)) {
        return;
      }
      server_.answered[index] = report.closed;
      AgentReport seen = report;
      if (server_.drain && seen.prepared == server_.drain->id) {
        seen.prepared = {};  // the core did not issue that one
      }
      ServerStep(AgentReported{id, seen});
      server_.heard.insert(index);
      server_.settled = server_.settled || server_.heard.size() == hosts_.size();
    });
  }
}

// What a stopped guardian is told waits until it goes on.
Duration Sim::GuardianLag(int index) {
  const Host& host = hosts_[static_cast<size_t>(index)];
  if (!Broken(host.guardian_stopped, index)) {
    return Duration{0};
  }
  return host.guardian_stopped.end - now_;
}

// The guardian kills at the stamped time, whatever became of its agent; the allowance is its own.
void Sim::StampDeadline(int index, Instant kill_at) {
  Host& host = hosts_[static_cast<size_t>(index)];
  host.kill_at = kill_at;
  const Duration delay = kill_at - now_ + Between(0, 900'000);
  At(std::max(delay, Duration{0}), [this, index, life = host.life] {
    const Host& at = hosts_[static_cast<size_t>(index)];
    if (at.life != life || !at.kill_at || *at.kill_at > now_ || at.suspended) {
      return;
    }
    for (auto& [id, process] : processes_) {
      if (process.host == index && process.life == life && process.alive) {
        Count("killed by guardian");
        Trace("guardian kills ", ToString(id));
        Die(process, {true, 9});
      }
    }
  });
}

// What changes a word is followed by a look at the page before anything else.
void Sim::CarryToWord(int index, const AgentAction& action, std::deque<AgentAction>& queue) {
  Host& host = hosts_[static_cast<size_t>(index)];
  const auto reread = [&](Process& process) {
    Bell(process);
    for (AgentAction& next :
         host.agent->Step(now_, agent_event::PageRead{process.id, Read(process)})) {
      queue.push_back(std::move(next));
    }
  };
  if (const auto* fence = std::get_if<agent_action::Fence>(&action)) {
    Process& process = *Find(fence->process);
    if (process.page.word.generation == fence->expected) {
      process.page.word.fenced = true;
      Count(process.page.word.committing ? "fenced while committing" : "fenced");
    }
    Trace("  fence ", ToString(process.id), " of ", fence->expected.value, " commits ",
          process.page.word.commits);
    reread(process);
  } else if (const auto* reset = std::get_if<agent_action::Reset>(&action)) {
    Process& process = *Find(reset->process);
    if (reset->generation.valid()) {
      process.page.identity[reset->generation.number] = reset->generation;
    }
    if (process.page.word == reset->from) {
      process.page.word = reset->to;
    } else {
      Count("reset lost a race");
    }
    Trace("  reset ", ToString(process.id), " to ", reset->to.generation.value, ",",
          reset->to.commits, reset->to.fenced ? " fenced" : "");
    reread(process);
  }
}

void Sim::Carry(int index, const AgentAction& action, std::deque<AgentAction>& queue) {
  if (std::holds_alternative<agent_action::Fence>(action) ||
      std::holds_alternative<agent_action::Reset>(action)) {
    CarryToWord(index, action, queue);
  } else if (const auto* offer = std::get_if<agent_action::OfferAgain>(&action)) {
    Rename(*Find(offer->process), offer->incarnation);
  } else if (const auto* roster = std::get_if<agent_action::DeliverRoster>(&action)) {
    Trace("  deliver ", roster->roster.id.number.value, " to ", ToString(roster->process));
    FrameToWorker(*Find(roster->process), [this, came = roster->roster](Process& process) {
      Feed(process, worker_event::RosterCame{came});
    });
  } else if (const auto* finish = std::get_if<agent_action::DeliverFinish>(&action)) {
    FrameToWorker(*Find(finish->process), [this, record = finish->record](Process& process) {
      Feed(process, worker_event::FinishRecorded{record});
    });
  } else if (const auto* leave = std::get_if<agent_action::TellLeave>(&action)) {
    FrameToWorker(*Find(leave->process),
                  [this](Process& process) { Feed(process, worker_event::LeaveTold{}); });
  } else if (const auto* spawn = std::get_if<agent_action::Spawn>(&action)) {
    Spawn(index, *spawn);
  } else if (const auto* stop = std::get_if<agent_action::TellStop>(&action)) {
    FrameToWorker(*Find(stop->process), [this](Process& process) {
      Feed(process, worker_event::StopWanted{kStopByOperator});
    });
  } else if (const auto* kill = std::get_if<agent_action::Kill>(&action)) {
    Trace("  kill ", ToString(kill->process), " with ", kill->signal);
    const Duration delay = kill->signal == 9 ? Between(0, 2000) : Between(0, 30'000);
    At(delay + GuardianLag(index), [this, id = kill->process, signal = kill->signal] {
      Process* victim = Find(id);
      if (victim != nullptr && victim->alive && (signal == 9 || !victim->paused)) {
        Die(*victim, {true, signal});
      }
    });
  } else if (const auto* forget = std::get_if<agent_action::Forget>(&action)) {
    Find(forget->process)->page_kept = false;
    Count("forgotten");
  } else if (std::holds_alternative<agent_action::Report>(action)) {
    SendReport(index);
  } else if (const auto* stamp = std::get_if<agent_action::StampDeadline>(&action)) {
    StampDeadline(index, stamp->kill_at);
  } else if (const auto* say = std::get_if<agent_action::Say>(&action)) {
    Trace("  agent says: ", say->text);
  } else if (std::holds_alternative<agent_action::EndAgent>(action)) {
    EndAgentProcess(index, false);
  }
}

}  // namespace elastic::internal::sim
