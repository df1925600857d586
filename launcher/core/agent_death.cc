// What is seen of the workers: pages, deaths, missed beats (P13, P23).
#include <algorithm>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

void AgentCore::State::Read(AgentWorker& worker, const PageReading& reading) {
  if (reading.beats != worker.reading.beats) {
    worker.beat_at = now;
    worker.suspended = false;
  }
  const CommitWord& before = worker.reading.word;
  const CommitWord& after = reading.word;
  // Commits alone are told with the next heartbeat.
  dirty = dirty || before.generation != after.generation || before.fenced != after.fenced ||
          (after.fenced && before != after);
  worker.progressed = worker.progressed || (after.generation.value != 0 && after.commits > 0);
  worker.reading = reading;
  worker.awaiting_page = false;
  NoteCrossing(worker);
}

void AgentCore::State::On(const agent_event::PageRead& event) {
  if (AgentWorker* worker = Of(event.process); worker != nullptr && !worker->dead) {
    Read(*worker, event.reading);
  }
}

// From here on no generation that has it may commit, and the process may not live on. One that ends
// by itself has time for it, since with a kill the user would lose the exit code and the last lines
// of output. A stop has its own time, before which nothing is killed.
void AgentCore::State::Lose(AgentWorker& worker, DeathCause cause, Duration time_to_exit) {
  if (worker.lost) {
    return;
  }
  worker.lost = true;
  worker.cause = cause;
  lost.insert(worker.incarnation);
  dirty = true;
  if (!worker.spawned || worker.reaped || stop == StopMode::kGraceful) {
    return;
  }
  if (time_to_exit > Duration{0}) {
    worker.kill_at = now + time_to_exit;
  } else {
    kills.push_back({worker.process, 9});
  }
}

// The futex also fires at execve and at the end of its thread, so the process may live on until it
// is killed; but a fenced word that is not committing cannot change, whoever still runs.
void AgentCore::State::On(const agent_event::OwnerDied& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->dead) {
    return;
  }
  Read(*worker, event.reading);
  worker->ownerless = true;
  Lose(*worker, DeathCause::kOwnerDied, kDyingGrace);
}

// In order if it was told to leave, knows that the job is finished, or never joined. Else the
// program gives up by its own will: a loss at once, but it exits by itself.
void AgentCore::State::On(const agent_event::Leaving& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->lost) {
    return;
  }
  if (!worker->ready || worker->told_leave || worker->told_finish) {
    worker->released = true;
    return;
  }
  worker->ownerless = true;
  Lose(*worker, DeathCause::kExited, settings.grace_period);
}

// For the word of one that was in a commit the survivors wait: it gets no time to exit.
void AgentCore::State::ConfirmDeaths() {
  for (auto& [incarnation, worker] : workers) {
    const CommitWord& word = worker.word();
    if (!worker.ownerless || worker.dead || worker.awaiting_page) {
      continue;
    }
    if (word.generation.value == 0 || word.final_after_fence()) {
      worker.dead = true;
      dirty = true;
    } else if (worker.kill_at.has_value()) {
      worker.kill_at.reset();
      kills.push_back({worker.process, 9});
    }
  }
}

void AgentCore::State::On(const agent_event::Exited& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->reaped) {
    return;
  }
  Read(*worker, event.reading);
  worker->ownerless = worker->reaped = true;
  worker->kill_at.reset();
  Lose(*worker, worker->ready ? DeathCause::kExited : DeathCause::kNeverJoined);
  worker->dead = true;
  const bool told = worker->told_leave || worker->told_finish;
  worker->released = event.status.ok() && (worker->released || told);
  worker->spawned = true;
  worker->exit = event.status;
  dirty = true;  // its successor waits until the server has heard of it
  DelaySlot(worker->slot, worker->progressed || worker->released);
}

// Held by an operator or a debugger is no death: the verdict is suspended. Anything else but
// `stopped` shows a process that runs or will run; its silence is told as beat_age.
void AgentCore::State::On(const agent_event::BeatMissed& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->lost) {
    return;
  }
  if (event.process_state == 'T') {
    Say(Severity::kWarning, NameOf(*worker) + " is stopped (state T): lost and killed");
    Lose(*worker, DeathCause::kStopped);
  } else if (event.process_state == 't' && !worker->suspended) {
    worker->suspended = true;
    Say(Severity::kWarning,
        NameOf(*worker) + " is traced or dumps core (state t): not counted as lost");
  }
}

void AgentCore::State::On(const agent_event::Ready& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->lost) {
    return;
  }
  worker->ready = true;
  worker->data = event.data;
  dirty = true;
}

// A message may be read before the page is: what it says about the word was true, so it is never
// taken back by an older reading. False: it was said before the process was offered again.
bool AgentCore::State::SawGeneration(AgentWorker& worker, const GenerationId& generation) {
  const auto roster = rosters.find(generation.number);
  if (roster == rosters.end() || roster->second.Find(worker.incarnation) == nullptr) {
    return false;
  }
  if (generation.number > worker.word().generation) {
    worker.reading.word = CommitWord{generation.number, 0, false, false};
    worker.reading.generation = generation;
    NoteCrossing(worker);
  }
  return true;
}

void AgentCore::State::On(const agent_event::Entered& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->dead || !SawGeneration(*worker, event.generation)) {
    return;
  }
  worker->entered = event.generation;
  dirty = true;
}

void AgentCore::State::On(const agent_event::Accused& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->lost || !SawGeneration(*worker, event.accusation.generation)) {
    return;
  }
  const bool present = event.accusation.generation == worker->reading.generation;
  std::erase_if(worker->accusations, [&](const Accusation& earlier) {
    return earlier.generation != worker->reading.generation;
  });
  if (present && !worker->word().fenced &&
      std::ranges::find(worker->accusations, event.accusation) == worker->accusations.end()) {
    worker->accusations.push_back(event.accusation);
    dirty = true;
  }
}

void AgentCore::State::On(const agent_event::ProgramFailed& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->dead) {
    return;
  }
  worker->program_error = event.message;
  dirty = true;
}

void AgentCore::State::On(const agent_event::Finished& event) {
  AgentWorker* worker = Of(event.process);
  if (worker == nullptr || worker->dead || !SawGeneration(*worker, event.generation)) {
    return;
  }
  worker->finished_in = event.generation;
  worker->finished = event.state;
  dirty = true;
}

}  // namespace elastic::internal
