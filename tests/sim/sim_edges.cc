// Edges of a generation: the lower rank dials, its hello waits at the higher one until that knows
// the roster; what fails is made anew when the core says so, while neither side has used its mesh.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

void Sim::Connect(Process& process, const Roster& roster) {
  const GenerationNumber number = roster.id.number;
  process.connected.insert(number);
  DialEdges(process, roster);
  for (const RosterEntry& entry : roster.entries) {
    Process* peer = entry.role == Role::kWorker ? Find(entry.incarnation) : nullptr;
    if (peer != nullptr && peer->alive && peer->links[number].dialled.contains(process.id)) {
      LinkEdge(*peer, process, roster.id);
    }
  }
  TellUp(process, roster);
}

void Sim::DialEdges(Process& process, const Roster& roster) {
  const GenerationNumber number = roster.id.number;
  const RosterEntry* own = EntryOf(roster, process.id);
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role != Role::kWorker || own == nullptr || entry.rank <= own->rank ||
        process.edges[number].contains(ProcessOf(entry.incarnation)) ||
        process.links[number].dialled.contains(ProcessOf(entry.incarnation))) {
      continue;
    }
    Process* peer = Find(entry.incarnation);
    const bool no_descriptor = Broken(process.no_dial);
    Hit(no_descriptor ? process.no_dial.by : Injected{}, Awaits(process));
    const bool deaf = peer != nullptr && (Broken(peer->no_answer) || Apart(process, *peer));
    Hit(deaf && Broken(peer->no_answer) ? peer->no_answer.by : Injected{}, Awaits(process));
    // One that was offered again answers to its newest name only.
    const bool there = peer != nullptr && peer->alive && !(entry.incarnation < peer->name) && !deaf;
    if (no_descriptor || !there) {
      FailEdge(process, roster.id, no_descriptor ? std::nullopt : std::optional(entry.incarnation));
      continue;
    }
    process.links[number].dialled.insert(peer->id);
    if (peer->connected.contains(number)) {
      LinkEdge(process, *peer, roster.id);
    }
  }
}

// A connection needs both directions.
bool Sim::Apart(const Process& a, const Process& b) {
  const bool awaited = Awaits(a) || Awaits(b);
  return Network(a.host, b.host, Duration{0}, awaited) > Duration{0} ||
         Network(b.host, a.host, Duration{0}, awaited) > Duration{0};
}

void Sim::LinkEdge(Process& caller, Process& called, const GenerationId& generation) {
  const GenerationNumber number = generation.number;
  if (called.used.contains(number)) {
    caller.links[number].dialled.erase(called.id);
    FailEdge(caller, generation, NameIn(number, called.id));
    return;
  }
  const uint64_t link = ++tokens_;
  const auto connect = [&](Process& one, const Process& other) {
    if (one.edges[number].contains(other.id) && one.told_up.erase(number) > 0) {
      ToProcess(one.id, Duration{0},
                [this, generation](Process& at) { Feed(at, worker_event::EdgesLost{generation}); });
    }
    one.edges[number][other.id] = link;
    one.links[number].broke.erase(other.id);
    ToProcess(one.id, Between(50, 3000), [this, number](Process& at) {
      if (const Roster* roster = ghost_.Find(number)) {
        TellUp(at, *roster);
      }
    });
  };
  connect(caller, called);
  connect(called, caller);
}

void Sim::TellUp(Process& process, const Roster& roster) {
  const GenerationNumber number = roster.id.number;
  const auto up = [size = roster.size(), number](Process& at) {
    return at.connected.contains(number) && static_cast<int>(at.edges[number].size()) == size - 1;
  };
  if (up(process) && process.told_up.insert(number).second) {
    ToProcess(process.id, Between(10, 500), [this, up, id = roster.id](Process& at) {
      if (up(at)) {
        Count(at.links[id.number].failed_once ? "edges stand after a failure" : "edges stand");
        Feed(at, worker_event::EdgesUp{id});
      }
    });
  }
}

void Sim::BreakEdge(Process& process, WorkerIncarnation peer, GenerationNumber number,
                    uint64_t link) {
  const auto found = process.edges.find(number);
  const Roster* roster = ghost_.Find(number);
  if (found == process.edges.end() || roster == nullptr || !found->second.contains(peer) ||
      found->second.at(peer) != link) {
    return;
  }
  const GenerationId id = roster->id;
  found->second.erase(peer);
  process.links[number].dialled.erase(peer);
  if (process.used.contains(number)) {
    Feed(process, worker_event::PeerBroken{id, NameIn(number, peer)});
    return;
  }
  process.links[number].broke.insert(peer);
  if (process.told_up.erase(number) > 0) {
    Feed(process, worker_event::EdgesLost{id});
  }
  FailEdge(process, id, NameIn(number, peer));
}

// Told once until the next try, whatever else fails.
void Sim::FailEdge(Process& process, const GenerationId& generation,
                   std::optional<WorkerIncarnation> peer) {
  ToProcess(process.id, Between(100, 3000), [this, generation, peer](Process& at) {
    Links& links = at.links[generation.number];
    if (at.connected.contains(generation.number) && !std::exchange(links.failed, true)) {
      links.failed_once = true;
      Count(peer ? "edge failed" : "edge failed, nobody to blame");
      Feed(at, worker_event::EdgesFailed{generation, peer, false, "edge"});
    }
  });
}

void Sim::RetryEdges(Process& process, const worker_action::RetryEdges& retry) {
  const GenerationNumber number = retry.generation.number;
  const uint64_t token = ++tokens_;
  process.links[number].retry = token;
  ToProcess(process.id, retry.after, [this, number, token](Process& at) {
    const Roster* roster = ghost_.Find(number);
    Links& links = at.links[number];
    if (!at.connected.contains(number) || roster == nullptr || links.retry != token) {
      return;
    }
    Count("edges tried again");
    links.failed = false;
    DialEdges(at, *roster);
    const RosterEntry* own = EntryOf(*roster, at.id);
    for (const WorkerIncarnation peer : links.broke) {
      const RosterEntry* entry = EntryOf(*roster, peer);
      if (own != nullptr && entry != nullptr && entry->rank < own->rank) {
        FailEdge(at, roster->id, entry->incarnation);
      }
    }
  });
}

WorkerIncarnation Sim::NameIn(GenerationNumber number, WorkerIncarnation process) const {
  return EntryOf(*ghost_.Find(number), process)->incarnation;
}

// What a death, or a process that leaves generations behind, does to its peers.
void Sim::EndEdges(const Process& process, GenerationNumber up_to) {
  for (const auto& [number, peers] : process.edges) {
    if (number > up_to) {
      break;
    }
    for (const auto& [peer, link] : peers) {
      const Duration delay =
          Network(process.host, Find(peer)->host, Between(50, 2000), Awaits(process));
      ToProcess(peer, delay, [this, id = process.id, number = number, link = link](Process& other) {
        BreakEdge(other, id, number, link);
      });
    }
  }
  for (auto& [id, other] : processes_) {
    for (auto& [number, links] : other.links) {
      // A number may have been issued again: the link is of the roster that had it before.
      const Roster* roster = ghost_.Find(number);
      const bool known = roster != nullptr && EntryOf(*roster, process.id) != nullptr;
      if (number <= up_to && known && !other.edges[number].contains(process.id) &&
          links.dialled.erase(process.id) > 0) {
        FailEdge(other, roster->id, NameIn(number, process.id));
      }
    }
  }
}

}  // namespace elastic::internal::sim
