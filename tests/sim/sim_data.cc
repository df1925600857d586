// The data plane: world collectives, fetches of state. Edges: sim_edges.cc.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

void Sim::Disconnect(Process& process, GenerationNumber up_to) {
  EndEdges(process, up_to);
  for (auto at = process.connected.begin(); at != process.connected.end() && *at <= up_to;) {
    const GenerationNumber number = *at;
    process.edges.erase(number);
    process.heard.erase(number);
    process.links.erase(number);
    at = process.connected.erase(at);
  }
  if (process.fetch_generation.valid() && process.fetch_generation.number <= up_to) {
    process.fetch_generation = {};
    process.accepted = false;
  }
  for (const auto& [id, asker] : processes_) {
    if (asker.fetch_generation.valid() && asker.fetch_generation.number <= up_to &&
        ProcessOf(asker.fetch_holder.incarnation) == process.id) {
      FailFetch(id, asker.fetch_token, Between(50, 2000));
    }
  }
  std::erase_if(process.requests,
                [&](const Request& request) { return request.generation.number <= up_to; });
}

// A world collective, of the program or of a commit: every rank hears every other.
void Sim::BeginCollective(Process& process, const GenerationId& generation) {
  const GenerationNumber number = generation.number;
  const uint32_t round = ++process.begun[number];
  const Agreement own = process.contribution;
  process.awaiting = generation;
  process.heard[number][round][process.id] = own;
  for (const auto& [peer, link] : process.edges[number]) {
    const Duration delay =
        Network(process.host, Find(peer)->host, Between(20, 3000), Awaits(process));
    ToProcess(peer, delay, [this, number, round, from = process.id, own](Process& at) {
      if (at.connected.contains(number) && at.edges[number].contains(from)) {
        at.heard[number][round][from] = own;
        CheckAgreement(at);
      }
    });
  }
  CheckAgreement(process);
}

void Sim::CheckAgreement(Process& process) {
  if (!process.awaiting.valid()) {
    return;
  }
  const GenerationId id = process.awaiting;
  const Roster* roster = ghost_.Find(id.number);
  const auto& values = process.heard[id.number][process.begun[id.number]];
  if (roster == nullptr || static_cast<int>(values.size()) < roster->size()) {
    return;
  }
  Agreement agreement = process.contribution;
  for (const auto& [from, value] : values) {
    agreement = Merge(agreement, value);
  }
  Count(agreement.smallest_prepared != agreement.largest_prepared ? "agreement differs"
        : agreement.smallest_prepared != 0                        ? "agreement names a successor"
                                                                  : "agreement");
  process.awaiting = {};
  process.differed = agreement.smallest_prepared != agreement.largest_prepared;
  ToProcess(process.id, Between(1, 200), [this, id, agreement](Process& at) {
    Feed(at, worker_event::Agreed{id, agreement});
    if (at.program == Program::kReducing && at.call == id && !at.call_over) {
      WantCommit(at);
    }
  });
}

void Sim::Fetch(Process& process, const worker_action::Fetch& fetch) {
  process.fetch_token = ++tokens_;
  process.fetch_generation = fetch.roster.id;
  process.fetch_holder = fetch.holder;
  process.accepted = false;
  const Request request{process.id, process.fetch_token, fetch.roster.id};
  Count("fetch");
  if (fetch.holder.role == Role::kCopy) {
    At(Between(50, 3000), [this, entry = fetch.holder, request, roster = fetch.roster] {
      AskCopy(entry, request, roster);
    });
    return;
  }
  const Process* holder = Find(fetch.holder.incarnation);
  if (holder == nullptr || !holder->alive) {
    FailFetch(process.id, request.token, Between(50, 3000));
    return;
  }
  const Duration delay = Network(process.host, holder->host, Between(50, 3000), Awaits(process));
  ToProcess(holder->id, delay, [this, request](Process& at) { Answer(at, request); });
}

// An agent serves what a dead worker held.
void Sim::AskCopy(const RosterEntry& entry, const Request& request, const Roster& roster) {
  const Process* dead = Find(entry.incarnation);
  const bool there = dead != nullptr && dead->page_kept &&
                     hosts_[static_cast<size_t>(dead->host)].agent &&
                     hosts_[static_cast<size_t>(dead->host)].life == dead->life;
  if (there && dead->page.held == roster.resume) {
    Count("copy served");
    OfferTo(request, dead->page.held, Duration{0});
  } else {
    FailFetch(request.asker, request.token, Duration{0});
  }
}

// A holder answers once it is in that generation itself: for a prepared one, past the boundary.
void Sim::Answer(Process& holder, const Request& request) {
  const CommitWord& word = holder.page.word;
  const Roster* roster = ghost_.Find(request.generation.number);
  if (word.generation > request.generation.number || roster == nullptr) {
    FailFetch(request.asker, request.token, Between(50, 2000));
    return;
  }
  const auto identity = holder.page.identity.find(word.generation);
  const bool inside = word.generation == request.generation.number && !word.fenced &&
                      identity != holder.page.identity.end() &&
                      identity->second == request.generation;
  const bool has =
      holder.page.held.valid() && (!roster->resume.valid() || holder.page.held == roster->resume);
  if (inside && has) {
    const Process& asker = *Find(request.asker);
    OfferTo(request, holder.page.held,
            Network(holder.host, asker.host, Duration{0}, Awaits(asker)));
  } else {
    holder.requests.push_back(request);
  }
}

void Sim::AnswerRequests(Process& holder) {
  for (const Request& request : std::exchange(holder.requests, {})) {
    Answer(holder, request);
  }
}

void Sim::FailFetch(WorkerIncarnation asker, uint64_t token, Duration delay) {
  ToProcess(asker, delay, [this, token](Process& at) {
    if (at.fetch_token == token && at.fetch_generation.valid()) {
      const worker_event::FetchFailed failed{at.fetch_generation, at.fetch_holder.incarnation};
      at.fetch_generation = {};
      at.accepted = false;
      Count("fetch failed");
      Feed(at, failed);
    }
  });
}

void Sim::OfferTo(const Request& request, const Held& held, Duration network) {
  ToProcess(request.asker, network + Between(50, 3000), [this, request, held](Process& at) {
    if (at.fetch_token == request.token && at.fetch_generation.valid()) {
      at.fetch_offer = held;
      Feed(at, worker_event::StateOffered{request.generation, held});
    }
  });
}

// Fills the spare buffer, which is the program's while it is in its function.
void Sim::Transfer(Process& process) {
  if (process.program != Program::kInRun && process.program != Program::kReturned) {
    return;
  }
  process.accepted = false;
  ToProcess(process.id, Between(200, 20'000), [this, token = process.fetch_token](Process& at) {
    if (at.fetch_token != token || !at.fetch_generation.valid()) {
      return;
    }
    const Process* holder = Find(at.fetch_holder.incarnation);
    const bool copy = at.fetch_holder.role == Role::kCopy;
    // Its own end of the connection closes with the generation.
    const bool open = holder->connected.contains(at.fetch_generation.number);
    const bool there = copy ? holder->page_kept : holder->alive && !holder->paused && open;
    if (!there) {
      FailFetch(at.id, token, Duration{0});
      return;
    }
    if (!(holder->page.held == at.fetch_offer)) {
      Violate(StrCat("G16 the state that worker ", ToString(holder->id),
                     " serves changes under the transfer"));
      return;
    }
    const worker_event::StateCame came{at.fetch_generation, at.fetch_offer};
    at.fetch_generation = {};
    Feed(at, came);
  });
}

void Sim::TakeState(Process& process, const Held& state) {
  ToProcess(process.id, Between(1, 500), [this, state](Process& at) {
    at.page.held = state;
    ghost_.CheckHolds(state, "worker " + ToString(at.id));
    Count(at.page.word.fenced ? "state taken while fenced" : "state taken");
    Feed(at, worker_event::StateTaken{state});
  });
}

}  // namespace elastic::internal::sim
