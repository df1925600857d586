#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/core/agent_core.h"

namespace elastic::internal::agent_test {

inline constexpr AgentIncarnation kAgent{7};
inline constexpr Duration kMillisecond = std::chrono::milliseconds(1);

inline WorkerIncarnation Worker(uint32_t counter) { return {kAgent, counter}; }
inline WorkerIncarnation Elsewhere(uint32_t counter) { return {AgentIncarnation{9}, counter}; }

inline RosterEntry Entry(WorkerIncarnation incarnation, int32_t rank, int32_t previous_rank = -1) {
  RosterEntry entry;
  entry.incarnation = incarnation;
  entry.rank = rank;
  entry.previous_rank = previous_rank;
  entry.host = incarnation.agent == kAgent ? "here" : "there";
  return entry;
}

inline Roster MakeRoster(uint32_t number, uint32_t parent, GenerationKind kind,
                         const std::vector<WorkerIncarnation>& members) {
  Roster roster;
  roster.kind = kind;
  roster.parent = GenerationNumber{parent};
  for (const WorkerIncarnation& member : members) {
    roster.entries.push_back(Entry(member, static_cast<int32_t>(roster.entries.size())));
  }
  roster.id = {ServerIncarnation{1}, GenerationNumber{number}, RosterDigest(roster)};
  return roster;
}

// An AgentCore with pages in memory: carries out fences and resets as the driver does, and writes
// down everything else, one word or two an action, in order.
class Fixture {
 public:
  explicit Fixture(int32_t slots = 2)
      : core(AgentSettings{.host = "here", .slots = slots}, Instant(std::chrono::seconds(1))) {
    now = Instant(std::chrono::seconds(1));
    for (int32_t slot = 0; slot < slots; ++slot) {
      wanted.push_back(slot);
    }
  }

  std::string Feed(const AgentEvent& event) {
    std::string text;
    std::deque<AgentAction> queue;
    const auto add = [&queue](AgentActions actions) {
      queue.insert(queue.end(), actions.begin(), actions.end());
    };
    add(core.Step(now, event));
    while (!queue.empty()) {
      const AgentAction action = std::move(queue.front());
      queue.pop_front();
      const std::string line = Carry(action, add);
      text += line.empty() ? "" : (text.empty() ? "" : "; ") + line;
    }
    for (const std::string& broken : core.BrokenInvariants()) {
      text += " BROKEN " + broken;
    }
    return text;
  }

  Directive MakeDirective() {
    Directive directive;
    directive.server = ServerIncarnation{1};
    directive.agent = kAgent;
    directive.sequence = ++sequence;
    directive.acked_report = report.sequence;
    directive.slots = wanted;
    return directive;
  }
  std::string Install(const Roster& roster, uint32_t closed = 0) {
    Directive directive = MakeDirective();
    directive.installed = roster;
    directive.closed = GenerationNumber{closed};
    return Feed(agent_event::DirectiveCame{directive});
  }
  // Registers, and starts a ready worker in every slot.
  void Start() {
    Feed(agent_event::Registered{kAgent, ServerIncarnation{1}});
    Feed(agent_event::DirectiveCame{MakeDirective()});
    for (uint32_t counter = 1; counter <= wanted.size(); ++counter) {
      MakeReady(counter);
    }
  }
  void MakeReady(uint32_t counter) {
    Feed(agent_event::Spawned{Worker(counter), 100 + counter});
    Feed(agent_event::Ready{Worker(counter), {"127.0.0.1", 1}});
  }
  PageReading Read(uint32_t counter) const { return pages.at(Worker(counter)); }
  std::string Look(uint32_t counter) {
    return Feed(agent_event::PageRead{Worker(counter), Read(counter)});
  }
  const WorkerReport& Reported(uint32_t counter) {
    report = core.MakeReport(now);
    for (const WorkerReport& worker : report.workers) {
      if (worker.incarnation == Worker(counter)) {
        return worker;
      }
    }
    static const WorkerReport none;
    return none;
  }
  CommitWord& Word(uint32_t counter) { return pages[Worker(counter)].word; }

  Instant now;
  AgentCore core;
  AgentReport report;
  std::map<WorkerIncarnation, PageReading> pages;
  std::map<std::pair<WorkerIncarnation, GenerationNumber>, GenerationId> identities;
  std::vector<int32_t> wanted;
  uint64_t sequence = 0;
  int errors = 0;  // said
  AgentStore::Answers answers;

 private:
  std::string Answered(const AgentStore::Answer& call) {
    answers.push_back(call);
    return "answer " + std::to_string(call.request) + " of " + ToString(call.process) + ": " +
           (call.code == StatusCode::kOk ? "OK " + call.bytes
                                         : std::string(StatusCodeName(call.code)));
  }

  template <class Add>
  std::string Carry(const AgentAction& action, const Add& add) {
    using namespace agent_action;
    if (const auto* fence = std::get_if<Fence>(&action)) {
      CommitWord& word = pages[fence->process].word;
      word.fenced = word.fenced || word.generation == fence->expected;
      add(core.Step(now, agent_event::PageRead{fence->process, pages[fence->process]}));
      return "fence " + ToString(fence->process);
    }
    if (const auto* reset = std::get_if<Reset>(&action)) {
      PageReading& page = pages[reset->process];
      if (page.word == reset->from) {
        page.word = reset->to;
        page.generation = reset->generation;
      }
      add(core.Step(now, agent_event::PageRead{reset->process, page}));
      return "reset " + ToString(reset->process) + " to " + ToString(reset->to.generation) + "," +
             std::to_string(reset->to.commits) + (reset->to.fenced ? ",fenced" : "");
    }
    if (const auto* offer = std::get_if<OfferAgain>(&action)) {
      return "offer " + ToString(offer->process) + " as " + ToString(offer->incarnation);
    }
    if (const auto* deliver = std::get_if<DeliverRoster>(&action)) {
      return "roster " + ToString(deliver->roster.id.number) + " to " + ToString(deliver->process);
    }
    if (const auto* finish = std::get_if<DeliverFinish>(&action)) {
      return "finish to " + ToString(finish->process);
    }
    if (const auto* stop = std::get_if<TellStop>(&action)) {
      return "stop " + ToString(stop->process);
    }
    if (const auto* leave = std::get_if<TellLeave>(&action)) {
      return "leave to " + ToString(leave->process);
    }
    if (const auto* spawn = std::get_if<Spawn>(&action)) {
      pages[spawn->process] = {};
      return "spawn " + ToString(spawn->process);
    }
    if (const auto* kill = std::get_if<Kill>(&action)) {
      return "kill " + ToString(kill->process) + " " + std::to_string(kill->signal);
    }
    if (const auto* forget = std::get_if<Forget>(&action)) {
      return "forget " + ToString(forget->process);
    }
    if (const auto* answer = std::get_if<AnswerStore>(&action)) {
      return Answered(answer->answer);
    }
    if (std::holds_alternative<Report>(action)) {
      report = core.MakeReport(now);
      return "report";
    }
    if (const auto* end = std::get_if<EndAgent>(&action)) {
      return "end " + std::to_string(end->exit_code);
    }
    if (const auto* say = std::get_if<Say>(&action)) {
      errors += say->severity == Severity::kError ? 1 : 0;
    }
    return "";  // Say and StampDeadline have their own checks
  }
};

}  // namespace elastic::internal::agent_test
