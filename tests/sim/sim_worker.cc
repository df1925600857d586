// Worker processes: the page, the runtime's thread with its core, the socket to the agent.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

WorkerIncarnation Sim::ProcessOf(WorkerIncarnation name) const {
  const auto renamed = renamed_.find(name);
  return renamed == renamed_.end() ? name : renamed->second;
}

const RosterEntry* Sim::EntryOf(const Roster& roster, WorkerIncarnation process) const {
  const auto found = std::ranges::find_if(roster.entries, [&](const RosterEntry& entry) {
    return entry.role == Role::kWorker && ProcessOf(entry.incarnation) == process;
  });
  return found == roster.entries.end() ? nullptr : &*found;
}

// Offered again: its agent and its peers know the new name before the process itself.
void Sim::Rename(Process& process, WorkerIncarnation name) {
  Count("offered again");
  Trace("  offer ", ToString(process.id), " again as ", ToString(name));
  renamed_[name] = process.id;
  FrameToWorker(process, [this, name](Process& at) {
    Feed(at, Look(at));
    at.name = name;
    Feed(at, worker_event::OfferedAgain{name});
  });
}

Process* Sim::Find(WorkerIncarnation name) {
  const auto found = processes_.find(ProcessOf(name));
  return found == processes_.end() ? nullptr : &found->second;
}

void Sim::Spawn(int host, const agent_action::Spawn& spawn) {
  const int life = hosts_[static_cast<size_t>(host)].life;
  Count("spawned");
  Trace("  spawn ", ToString(spawn.process));
  At(Between(2000, 30'000) + GuardianLag(host), [this, host, life, spawn] {
    Host& at = hosts_[static_cast<size_t>(host)];
    if (!at.agent || at.life != life) {
      return;  // its guardian ended with it
    }
    for (const auto& [id, other] : processes_) {
      if (other.alive && other.host == host && other.slot == spawn.slot) {
        Violate(StrCat("G11 two processes in slot ", at.name, ":", spawn.slot));
      }
    }
    Process& process = processes_[spawn.process];
    process.id = process.name = spawn.process;
    process.host = host;
    process.slot = spawn.slot;
    process.life = life;
    ToAgent(host, life, Duration{0}, [this, host, id = spawn.process] {
      AgentStep(host, agent_event::Spawned{id, 1000 + id.counter});
    });
    Duration start = Between(30'000, 250'000);
    if (std::exchange(at.slow_next, false)) {
      // It is waited for from when it would have been ready until it is.
      const Duration late = Between(1'000'000, 15'000'000);
      process.late = true;
      for (Duration after = start; after < start + late; after += std::chrono::milliseconds(200)) {
        ToProcess(spawn.process, after,
                  [this, by = at.slow_by](Process& late_one) { Hit(by, Awaits(late_one)); });
      }
      start += late;
    }
    ToProcess(spawn.process, start, [this](Process& started) {
      started.core = std::make_unique<WorkerCore>(started.id);
      started.late = false;
      started.program = Program::kInRun;
      started.page.beats = 1;
      const Endpoint data{"worker", static_cast<uint16_t>(1 + started.id.counter)};
      started.ready_told = true;
      FromWorker(started, [data](const Process& from) -> AgentEvent {
        return agent_event::Ready{from.id, data};
      });
    });
  });
}

// The program gives up and shuts its runtime down, and exits by itself some time after.
void Sim::Leave(Process& process) {
  const int host = process.host;
  const WorkerIncarnation id = process.id;
  const Duration futex = Between(100, 1500);
  EndRuntime(process, false);
  ToAgent(host, process.life, futex, [this, host, id] {
    AgentStep(host, agent_event::PageRead{id, Read(*Find(id))});
    AgentStep(host, agent_event::Leaving{id});
  });
  ToAgent(host, process.life, futex + Between(1000, 3'000'000), [this, host, id] {
    AgentStep(host, agent_event::Exited{id, {false, 1}, Read(*Find(id))});
  });
}

// `silent`: with its host, so that nobody sees a connection end.
void Sim::EndRuntime(Process& process, bool silent) {
  process.alive = false;
  process.backlog.clear();
  const WorkerIncarnation id = process.id;
  if (!silent) {
    EndEdges(process, GenerationNumber{UINT32_MAX});
    for (const auto& [other, asker] : processes_) {
      if (asker.fetch_generation.valid() && ProcessOf(asker.fetch_holder.incarnation) == id &&
          asker.fetch_holder.role == Role::kWorker) {
        FailFetch(other, asker.fetch_token, Between(50, 2000));
      }
    }
  }
}

void Sim::Die(Process& process, ExitStatus status, bool silent) {
  Trace("process ", ToString(process.id), " ends: ", ToString(status));
  EndRuntime(process, silent);
  const WorkerIncarnation id = process.id;
  const int host = process.host;
  const Duration futex = Between(100, 1500);
  if (process.core && rng_.Chance(4, 5)) {
    ToAgent(host, process.life, futex, [this, host, id] {
      AgentStep(host, agent_event::OwnerDied{id, Read(*Find(id))});
    });
  }
  ToAgent(host, process.life, futex + Between(0, 8000), [this, host, id, status] {
    AgentStep(host, agent_event::Exited{id, status, Read(*Find(id))});
  });
}

void Sim::ToProcess(WorkerIncarnation id, Duration delay, std::function<void(Process&)> action) {
  At(delay, [this, id, action = std::move(action)] {
    Process* process = Find(id);
    if (process != nullptr && process->alive) {
      Deliver(*process, action);
    }
  });
}

void Sim::Deliver(Process& process, std::function<void(Process&)> action) {
  if (process.paused || process.busy) {
    Hit(process.paused ? process.paused_by : Injected{}, Awaits(process));
    process.backlog.push_back(std::move(action));
  } else {
    action(process);
  }
}

void Sim::DrainBacklog(Process& process) {
  while (process.alive && !process.paused && !process.busy && !process.backlog.empty()) {
    const auto action = std::move(process.backlog.front());
    process.backlog.pop_front();
    action(process);
  }
}

// The driver reads the page before it hands on what a frame says.
void Sim::FromWorker(Process& process, std::function<AgentEvent(const Process&)> make) {
  const WorkerIncarnation id = process.id;
  const AgentEvent event = make(process);
  process.to_agent = std::max(process.to_agent, now_ + Between(20, 800));
  ToAgent(process.host, process.life, process.to_agent - now_, [this, id, event] {
    const Process& from = *Find(id);
    AgentStep(from.host, agent_event::PageRead{id, Read(from)});
    if (!std::holds_alternative<agent_event::PageRead>(
            event)) {  // a look of now is all it asked for
      AgentStep(from.host, event);
    }
  });
}

void Sim::FrameToWorker(Process& process, std::function<void(Process&)> action) {
  process.to_worker = std::max(process.to_worker, now_ + Between(20, 800));
  ToProcess(process.id, process.to_worker - now_, std::move(action));
}

worker_event::WordSeen Sim::Look(const Process& process) const {
  const PageReading reading = Read(process);
  return {reading.word, reading.generation};
}

void Sim::Feed(Process& process, const WorkerEvent& event) {
  if (!process.core) {
    return;
  }
  Trace("worker ", ToString(process.id), " event ", event.index());
  ++result_.events;
  std::deque<WorkerAction> queue;
  for (WorkerAction& action : process.core->Step(event)) {
    queue.push_back(std::move(action));
  }
  CarryAll(process, std::move(queue));
}

// A compare-exchange is followed by a look at the word before anything else, but now and then the
// thread is held up in between, and the agent is not.
void Sim::CarryAll(Process& process, std::deque<WorkerAction> queue) {
  while (!queue.empty() && process.alive) {
    const WorkerAction action = std::move(queue.front());
    queue.pop_front();
    const auto* cas = std::get_if<worker_action::Cas>(&action);
    if (cas == nullptr) {
      Carry(process, action);
      continue;
    }
    CompareExchange(process, *cas);
    const auto look = [this](Process& later, std::deque<WorkerAction> rest) {
      std::deque<WorkerAction> next;
      for (WorkerAction& follow : later.core->Step(Look(later))) {
        next.push_back(std::move(follow));
      }
      next.insert(next.end(), rest.begin(), rest.end());
      return next;
    };
    if (!rng_.Chance(1, 6)) {
      queue = look(process, std::move(queue));
      continue;
    }
    process.busy = true;
    At(Between(10, 4000), [this, id = process.id, look, rest = std::move(queue)] {
      const auto go_on = [this, look, rest](Process& later) {
        later.busy = false;
        CarryAll(later, look(later, rest));
        DrainBacklog(later);
      };
      Process& later = *Find(id);
      if (later.alive && later.paused) {
        later.busy = false;  // goes on, still before anything else, when it is continued
        later.backlog.push_front(go_on);
      } else if (later.alive) {
        go_on(later);
      }
    });
    return;
  }
  if (!process.alive || !process.core) {
    return;
  }
  for (const std::string& text : process.core->BrokenInvariants()) {
    Violate(StrCat("worker ", ToString(process.id), " ", text));
  }
  AnswerRequests(process);
}

void Sim::CompareExchange(Process& process, const worker_action::Cas& cas) {
  const Host& host = hosts_[static_cast<size_t>(process.host)];
  if (now_ > host.acknowledged + spec_.orphan_limit + kKillAllowance && host.life == process.life) {
    Violate(StrCat("G21 worker ", ToString(process.id),
                   " lives on although no server answered for ",
                   FormatDuration(now_ - host.acknowledged)));
  }
  Page& page = process.page;
  page.identity[cas.generation.number] = cas.generation;
  if (!(page.word == cas.from)) {
    Count("exchange lost a race");
    return;
  }
  if (host.claimed_dead.contains(process.name)) {
    Violate(StrCat("G8 worker ", ToString(process.id), " writes after it was reported dead"));
  }
  page.word = cas.to;
  Trace("  word of ", ToString(process.id), " is ", cas.to.generation.value, ",", cas.to.commits,
        cas.to.committing ? " committing" : "", cas.to.fenced ? " fenced" : "");
  const bool claimed = host.life == process.life && cas.to.generation <= host.claimed_closed;
  if (cas.to.generation != cas.from.generation) {
    if (claimed) {
      Violate(StrCat("G10 worker ", ToString(process.id), " enters generation ",
                     cas.to.generation.value, ", which its agent has reported closed"));
    }
    const bool member = cas.from.generation.value != 0;
    Count(member ? "boundary passed" : "newcomer entered");
    if (member) {
      ghost_.CrossedInto(cas.generation, page.held.version);
      if (process.differed) {
        Violate(StrCat("G22 worker ", ToString(process.id), " enters generation ",
                       cas.generation.number.value, ", which the contributions do not agree on"));
      }
      HideEntry(cas.generation);
    }
    return;
  }
  if (cas.to.commits != cas.from.commits) {
    if (claimed) {
      Violate(StrCat("G10 worker ", ToString(process.id), " commits in generation ",
                     cas.to.generation.value, ", which its agent has reported closed"));
    }
    Count("commit");
    committed_at_ = now_;
    ghost_.Committed(process.name, cas.generation, {cas.to.generation, cas.to.commits});
    for (const auto& [id, other] : processes_) {
      const int64_t apart = int64_t{other.page.word.commits} - int64_t{cas.to.commits};
      if (other.alive && other.page.word.generation == cas.to.generation &&
          (apart > 1 || apart < -1)) {
        Violate(StrCat("G14 commits of workers ", ToString(process.id), " and ", ToString(id),
                       " in generation ", cas.to.generation.value, " differ by more than one"));
      }
    }
  }
}

void Sim::Carry(Process& process, const WorkerAction& action) {
  if (const auto* connect = std::get_if<worker_action::Connect>(&action)) {
    Connect(process, connect->roster);
  } else if (const auto* retry = std::get_if<worker_action::RetryEdges>(&action)) {
    RetryEdges(process, *retry);
  } else if (const auto* disconnect = std::get_if<worker_action::Disconnect>(&action)) {
    Disconnect(process, disconnect->up_to);
  } else if (const auto* fetch = std::get_if<worker_action::Fetch>(&action)) {
    Fetch(process, *fetch);
  } else if (const auto* take = std::get_if<worker_action::TakeState>(&action)) {
    TakeState(process, take->state);
  } else if (std::holds_alternative<worker_action::AcceptState>(action)) {
    process.accepted = true;
    Transfer(process);
  } else if (const auto* entered = std::get_if<worker_action::ReportEntered>(&action)) {
    Count("entered");
    FromWorker(process, [&](const Process& from) -> AgentEvent {
      return agent_event::Entered{from.id, entered->generation};
    });
  } else if (const auto* accuse = std::get_if<worker_action::ReportAccusation>(&action)) {
    Count("accusation");
    FromWorker(process, [&](const Process& from) -> AgentEvent {
      return agent_event::Accused{from.id, accuse->accusation};
    });
  } else if (const auto* finished = std::get_if<worker_action::ReportFinished>(&action)) {
    Count("finished reported");
    FromWorker(process, [&](const Process& from) -> AgentEvent {
      return agent_event::Finished{from.id, finished->generation, finished->state};
    });
  } else if (std::holds_alternative<worker_action::ReportWordSettled>(action)) {
    Count("word settled");
    FromWorker(process, [&](const Process& from) -> AgentEvent {
      return agent_event::PageRead{from.id, Read(from)};
    });
  } else if (const auto* contribute = std::get_if<worker_action::Contribute>(&action)) {
    process.contribution = contribute->own;
  } else if (const auto* await = std::get_if<worker_action::AwaitAgreement>(&action)) {
    process.contribution = await->own;
    BeginCollective(process, await->generation);
  } else if (const auto* copy = std::get_if<worker_action::CopyState>(&action)) {
    CopyState(process, copy->version);
  } else if (const auto* returns = std::get_if<worker_action::CommitReturns>(&action)) {
    CommitReturned(process, returns->committed);
  } else if (const auto* open = std::get_if<worker_action::Open>(&action)) {
    process.used.insert(open->roster.id.number);
    TakeOpen(process, *open);
  } else if (const auto* close = std::get_if<worker_action::Close>(&action)) {
    CloseCall(process, close->generation);
  } else if (const auto* run = std::get_if<worker_action::RunReturns>(&action)) {
    RunReturned(process, run->left);
  } else if (const auto* fatal = std::get_if<worker_action::Fatal>(&action)) {
    Trace("  fatal: ", fatal->message);
    const bool edges = fatal->message.starts_with("this worker gives up");
    Count(edges ? "gives up for want of edges" : "gives up for want of state");
    if (!edges && fatal->message.find("holders gave the state") == std::string::npos) {
      Violate("G15 worker " + ToString(process.id) + ": " + fatal->message);
    }
    Die(process, {false, 1});
  }
}

}  // namespace elastic::internal::sim
