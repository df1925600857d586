// The user's program in run(): sync, compute, commit, return, again and again.
#include <utility>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

void Sim::TakeOpen(Process& process, const worker_action::Open& open) {
  if (!open.restored) {
    process.call = open.roster.id;  // inside commit(), which returns next
    process.call_roster = open.roster;
    process.call_over = false;
    return;
  }
  process.offered = open;
  if (process.program == Program::kInRun || process.program == Program::kReturned) {
    BackInRun(process);
  }
}

// The program's call is unwound: its memory may be written, and the next call may begin.
void Sim::BackInRun(Process& process) {
  process.program = Program::kInRun;
  if (process.accepted) {
    Transfer(process);
  }
  if (process.offered) {
    ToProcess(process.id, Between(10, 2000), [this](Process& at) {
      if (at.program == Program::kInRun && at.offered) {
        StartCall(at);
      }
    });
  }
}

void Sim::StartCall(Process& process) {
  const worker_action::Open open = *std::exchange(process.offered, std::nullopt);
  process.call = open.roster.id;
  process.call_roster = open.roster;
  process.call_over = false;
  if (open.roster.kind == GenerationKind::kInstalled && open.roster.resume.valid() &&
      !(process.page.held == open.roster.resume)) {
    Violate(StrCat("G6 worker ", ToString(process.id), " starts with version ",
                   ToString(process.page.held.version), " instead of ",
                   ToString(open.roster.resume.version)));
  }
  const bool fresh = open.roster.kind == GenerationKind::kInstalled && !open.roster.resume.valid();
  if (!fresh) {
    process.step = process.page.held.step;
    Compute(process);
    return;
  }
  // P7: rank 0's initial state goes to all, then version 0 is committed.
  process.program = Program::kSyncing;
  const RosterEntry* own = EntryOf(open.roster, process.id);
  if (own != nullptr && own->rank == 0) {
    for (const RosterEntry& entry : open.roster.entries) {
      const GenerationNumber number = open.roster.id.number;
      const Process* to = Find(entry.incarnation);
      const Duration delay = Network(process.host, to == nullptr ? process.host : to->host,
                                     Between(20, 3000), Awaits(process));
      ToProcess(entry.incarnation, delay, [this, number](Process& at) {
        at.synced.insert(number);
        Synced(at);
      });
    }
  } else {
    Synced(process);
  }
}

void Sim::Synced(Process& process) {
  if (process.program == Program::kSyncing && !process.call_over &&
      process.synced.contains(process.call.number)) {
    process.program = Program::kCommitting;
    process.step = 0;
    Feed(process, worker_event::CommitWanted{process.call});
  }
}

void Sim::Compute(Process& process) {
  process.program = Program::kComputing;
  ToProcess(process.id, Between(500, 20'000), [this](Process& at) {
    if (at.program != Program::kComputing) {
      return;
    }
    if (at.step < steps_) {
      if (!Reduces(at)) {
        WantCommit(at);
        return;
      }
      Count("world collective");
      at.program = Program::kReducing;
      Feed(at, worker_event::CollectiveWanted{at.call});
      if (at.call_over) {
        BackInRun(at);
      } else {
        BeginCollective(at, at.call);
      }
      return;
    }
    at.program = Program::kReturned;
    Feed(at, worker_event::FunctionReturned{at.page.held, at.call});
    if (at.call_over) {
      BackInRun(at);
    }
  });
}

// Alike on all ranks: some steps make no world collective, and their commit makes its own.
bool Sim::Reduces(const Process& process) {
  return (process.step + process.call.number.value) % 3 != 0;
}

void Sim::WantCommit(Process& process) {
  process.program = Program::kCommitting;
  ++process.step;
  Feed(process, worker_event::CommitWanted{process.call});
}

// Version 0 labels the state before the first step.
void Sim::CopyState(Process& process, StateVersion version) {
  if (process.call.number != version.generation) {
    Violate(StrCat("G6 worker ", ToString(process.id), " commits ", ToString(version),
                   " with a step computed in generation ", process.call.number.value));
  }
  process.copying = version;
  ToProcess(process.id, Between(20, 3000), [this, version](Process& at) {
    if (std::exchange(at.copying, {}) != version) {
      return;  // told to leave: the program makes no copy for a commit that was answered
    }
    const Roster& roster = at.call_roster;
    const bool first =
        version.commits == 1 && roster.kind == GenerationKind::kInstalled && !roster.resume.valid();
    const Held base = first ? Held{} : at.page.held;
    const Held held = Ghost::Next(base, version, at.step);
    const Host& host = hosts_[static_cast<size_t>(at.host)];
    if (host.claimed_dead.contains(at.name)) {
      Violate(StrCat("G8 worker ", ToString(at.id), " writes after it was reported dead"));
    }
    ghost_.Written(at.name, base, held);
    at.page.held = held;
    Feed(at, worker_event::CopyDone{held});
  });
}

void Sim::CommitReturned(Process& process, bool committed) {
  process.copying = {};
  if (committed) {
    ghost_.Returned(process.page.held.version);
    Compute(process);
    return;
  }
  process.awaiting = {};
  ToProcess(process.id, Between(10, 5000), [this](Process& at) { BackInRun(at); });
}

void Sim::CloseCall(Process& process, const GenerationId& generation) {
  if (process.offered && process.offered->roster.id == generation) {
    process.offered.reset();
  }
  if (process.call != generation) {
    return;
  }
  process.call_over = true;
  process.awaiting = {};
  if (process.program == Program::kSyncing || process.program == Program::kReducing) {
    ToProcess(process.id, Between(10, 5000), [this](Process& at) { BackInRun(at); });
  } else if (process.program == Program::kReturned) {
    BackInRun(process);
  }
}

void Sim::RunReturned(Process& process, bool left) {
  if (!left && !recorded_) {
    Violate(StrCat("G7 run returns at worker ", ToString(process.id), " without a record"));
  }
  Count(left ? "left" : "run returned");
  ToProcess(process.id, Between(10, 3000), [this](Process& at) {
    FromWorker(at, [](const Process& from) -> AgentEvent { return agent_event::Leaving{from.id}; });
    ToProcess(at.id, Between(900, 5000), [this](Process& gone) { Die(gone, {false, 0}); });
  });
}

}  // namespace elastic::internal::sim
