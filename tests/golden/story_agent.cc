#include <algorithm>
#include <stdexcept>

#include "tests/golden/story.h"

// What a correct agent does with its newest directive, and what it reports.
namespace elastic::internal {

void Story::Report(const std::string& host) {
  Agent& agent = agents_.at(host);
  AgentReport report{.host = host,
                     .agent = agent.incarnation,
                     .sequence = ++agent.sequence,
                     .acked_directive = agent.acked,
                     .installed = agent.installed,
                     .prepared = agent.prepared,
                     .closed = agent.closed,
                     .marks = agent.marks,
                     .copies = agent.serves_copies ? Endpoint{"10.0.0.1", 9000} : Endpoint{},
                     .workers = {},
                     .spawn_error = agent.spawn_error,
                     .server = agent.server,
                     .memory = MemoryOf(agent),
                     .puts = agent.puts,
                     .wanted = agent.wanted};
  for (const auto& [name, actor] : actors_) {
    if (actor.host == host && !actor.forgotten) {
      report.workers.push_back(actor.report);
    }
  }
  std::ranges::sort(report.workers, {}, &WorkerReport::incarnation);
  Feed(AgentReported{agent.connection, std::move(report)});
}

// A real one leaves it out once the server has acknowledged it.
Memory Story::MemoryOf(const Agent& agent) {
  Memory memory;
  for (const auto& [number, roster] : agent.rosters) {
    memory.rosters.push_back(roster);
  }
  memory.finished = agent.finished;
  memory.told_all = agent.told_all;
  return memory;
}

void Story::Follow(const std::string& host) {
  Agent& agent = agents_.at(host);
  const auto directive = membership_->DirectiveFor(host, now_);
  if (!directive || directive->agent != agent.incarnation) {
    throw std::runtime_error("no directive for the agent of " + host);
  }
  Obey(agent, host, *directive);
  Report(host);
}

void Story::Obey(Agent& agent, const std::string& host, const Directive& directive) {
  agent.acked = directive.sequence;
  TakeStore(agent, directive);
  agent.closed = std::max(agent.closed, directive.closed);
  agent.prepared = directive.prepared ? directive.prepared->id : GenerationId{};
  for (const std::optional<Roster>& roster : {directive.installed, directive.prepared}) {
    if (roster) {
      agent.rosters.insert_or_assign(roster->id.number, *roster);
    }
  }
  agent.finished = directive.finished;
  agent.told_all = agent.told_all || !directive.relearning;
  Words again;
  for (auto& [name, actor] : actors_) {
    WorkerReport& report = actor.report;
    if (actor.host != host || actor.forgotten || report.incarnation.agent != agent.incarnation) {
      continue;
    }
    const auto told = [&](const std::vector<WorkerIncarnation>& list) {
      return std::ranges::count(list, report.incarnation) > 0;
    };
    if (told(directive.forget)) {
      actor.forgotten = true;
    }
    if (report.life == WorkerLife::kDead) {
      continue;
    }
    if (directive.stop != StopMode::kNone) {
      Die(actor, "signal:15");
    } else if (told(directive.remove)) {
      Die(actor, "signal:9");
      report.cause = DeathCause::kMarkedByServer;
    } else if (directive.finished && directive.installed->Find(report.incarnation) == nullptr) {
      report.released = true;
      Die(actor, "exit:0");
    }
    if (report.word.generation.value != 0 && report.word.generation <= agent.closed) {
      report.word.fenced = true;
    }
    if (directive.installed && directive.installed->kind == GenerationKind::kInstalled &&
        report.life != WorkerLife::kDead) {
      MoveTo(actor, *directive.installed, agent.closed);
    }
    if (told(directive.offer_again) && report.life != WorkerLife::kDead &&
        !report.word.committing) {
      again.push_back(name);
    }
  }
  for (const std::string& name : again) {
    OfferAgain(agent, name);
  }
  if (directive.installed) {
    agent.installed = directive.installed->id;
  }
}

// P20: the process lives on under another name, here that of its first life with a ' behind.
void Story::OfferAgain(Agent& agent, const std::string& name) {
  Actor& before = actors_.at(name);
  Actor actor = before;
  before.report.life = WorkerLife::kDead;
  before.report.cause = DeathCause::kOfferedAgain;
  before.report.held = {};
  actor.report.incarnation.counter = ++agent.counter;
  actor.report.life = WorkerLife::kWaiting;
  actor.report.word = {};
  actor.report.generation = {};
  actor.report.entered = false;
  actor.report.accusations.clear();
  actor.report.finished.reset();
  names_[actor.report.incarnation] = name + "'";
  actors_[name + "'"] = actor;
}

// P24: only fenced, non-committing words are reset; a number that is closed is never entered (P12).
void Story::MoveTo(Actor& actor, const Roster& roster, GenerationNumber closed) {
  WorkerReport& report = actor.report;
  const bool free_to_go = report.word.generation.value == 0 || report.word.final_after_fence();
  if (roster.Find(report.incarnation) == nullptr || !free_to_go || roster.id.number <= closed ||
      report.word.generation >= roster.id.number) {
    return;
  }
  report.word = {.generation = roster.id.number};
  report.generation = roster.id;
  report.life = WorkerLife::kMember;
  report.entered = false;
  report.finished.reset();
  report.accusations.clear();
}

}  // namespace elastic::internal
