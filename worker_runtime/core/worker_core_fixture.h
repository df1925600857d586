#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "worker_runtime/core/worker_core.h"

// Shared by the golden stories of the worker core.
namespace elastic::internal::worker_testing {

inline constexpr WorkerIncarnation kSelf{AgentIncarnation{1}, 1};
inline constexpr WorkerIncarnation kPeer{AgentIncarnation{2}, 1};
inline constexpr WorkerIncarnation kNew{AgentIncarnation{2}, 2};
inline constexpr WorkerIncarnation kDead{AgentIncarnation{2}, 9};

constexpr CommitWord Word(uint32_t generation, uint32_t commits = 0, bool committing = false,
                          bool fenced = false) {
  return {GenerationNumber{generation}, commits, committing, fenced};
}
inline Held Version(uint32_t generation, uint32_t commits) {
  return {{GenerationNumber{generation}, commits}, 100 * generation + commits, commits};
}

struct Member {
  WorkerIncarnation id;
  bool member_before = true, holds = false;
};
inline Roster MakeRoster(uint32_t number, uint32_t parent, GenerationKind kind, Held resume,
                         const std::vector<Member>& members) {
  Roster roster;
  roster.kind = kind;
  roster.parent = GenerationNumber{parent};
  roster.resume = resume;
  int32_t rank = 0;
  for (const Member& member : members) {
    RosterEntry entry;
    entry.incarnation = member.id;
    entry.rank = rank++;
    entry.previous_rank = member.member_before ? entry.rank : -1;
    entry.holds_resume = member.holds;
    roster.entries.push_back(entry);
  }
  roster.id = {ServerIncarnation{1}, GenerationNumber{number}, RosterDigest(roster)};
  return roster;
}
inline Roster First() {
  return MakeRoster(1, 0, GenerationKind::kInstalled, {}, {{kSelf}, {kPeer}});
}
inline Roster Grown(uint32_t number = 2) {
  return MakeRoster(number, 1, GenerationKind::kPrepared, {},
                    {{kSelf}, {kPeer}, {.id = kNew, .member_before = false}});
}

inline std::string Text(CommitWord word) {
  return std::to_string(word.generation.value) + "," + std::to_string(word.commits) +
         (word.committing ? "C" : "") + (word.fenced ? "F" : "");
}

// Prepared successor, and who wants to stop if somebody does.
inline std::string Text(const Agreement& value) {
  return std::to_string(value.smallest_prepared) +
         (value.stop == 0 ? "" : ", stop " + std::to_string(value.stop));
}

// A core with its word in memory: carries out exchanges, and writes down everything else in order.
// `before_exchange` is what the agent does to the word just before the next exchange.
class Fixture {
 public:
  explicit Fixture(WorkerIncarnation self = kSelf) : core(self) {}

  std::string Feed(const WorkerEvent& event) {
    std::string text;
    std::deque<WorkerAction> queue;
    const auto front = [&queue](WorkerActions actions) {
      queue.insert(queue.begin(), actions.begin(), actions.end());
    };
    front(core.Step(event));
    while (!queue.empty()) {
      const WorkerAction action = std::move(queue.front());
      queue.pop_front();
      if (const auto* cas = std::get_if<worker_action::Cas>(&action)) {
        word = before_exchange ? *std::exchange(before_exchange, std::nullopt) : word;
        if (word == cas->from) {
          word = cas->to;
          identity = word.generation == cas->generation.number ? cas->generation : identity;
        }
        front(core.Step(worker_event::WordSeen{word, identity}));
        text += (text.empty() ? "" : "; ") + ("word " + Text(word));
        continue;
      }
      text += (text.empty() ? "" : "; ") + Describe(action);
    }
    for (const std::string& broken : core.BrokenInvariants()) {
      text += " BROKEN " + broken;
    }
    return text;
  }
  std::string See(CommitWord seen, const GenerationId& id) {
    word = seen;
    identity = id;
    return Feed(worker_event::WordSeen{word, identity});
  }
  std::string Fence() {
    word.fenced = true;
    return Feed(worker_event::WordSeen{word, identity});
  }
  void EnterFirst() {
    Feed(worker_event::RosterCame{First()});
    See(Word(1), First().id);
    Feed(worker_event::EdgesUp{First().id});
  }
  // What all ranks contributed, where they contributed equally.
  Agreement Alike(uint32_t prepared = 0, uint32_t stop = 0) const {
    return Agreement::Of(prepared, stop, {.commits = word.commits, .rank = 0, .step = step});
  }
  std::string Agree(const Agreement& agreement) {
    return Feed(worker_event::Agreed{identity, agreement});
  }
  // With the agreement of a collective of the program.
  std::string Commit(uint32_t prepared = 0) {
    std::string text = Feed(worker_event::CollectiveWanted{identity});
    text += "; " + Agree(Alike(prepared));
    text += "; " + Feed(worker_event::CommitWanted{identity});
    return text + "; " + Copied();
  }
  std::string Copied() {
    const Held held = Version(word.generation.value, word.commits + 1);
    step = held.step;
    return Feed(worker_event::CopyDone{held});
  }

  WorkerCore core;
  CommitWord word;
  GenerationId identity;
  uint64_t step = 0;  // label of what this worker holds
  std::optional<CommitWord> before_exchange;

 private:
  static std::string Describe(const WorkerAction& action) {
    using namespace worker_action;
    if (const auto* connect = std::get_if<Connect>(&action)) {
      return "connect " + ToString(connect->roster.id.number);
    }
    if (const auto* retry = std::get_if<RetryEdges>(&action)) {
      return "retry " + ToString(retry->generation.number) + " in " + FormatDuration(retry->after);
    }
    if (const auto* warn = std::get_if<Warn>(&action)) {
      return "warn " + warn->message;
    }
    if (const auto* disconnect = std::get_if<Disconnect>(&action)) {
      return "disconnect " + ToString(disconnect->up_to);
    }
    if (const auto* fetch = std::get_if<Fetch>(&action)) {
      return "fetch " + ToString(fetch->roster.id.number) + " from " +
             ToString(fetch->holder.incarnation);
    }
    if (std::holds_alternative<AcceptState>(action)) {
      return "accept";
    }
    if (std::holds_alternative<TakeState>(action)) {
      return "take";
    }
    if (std::holds_alternative<ReportEntered>(action)) {
      return "entered";
    }
    if (const auto* accusation = std::get_if<ReportAccusation>(&action)) {
      return "accuse " + ToString(accusation->accusation.accused);
    }
    if (std::holds_alternative<ReportFinished>(action)) {
      return "finished";
    }
    if (std::holds_alternative<ReportWordSettled>(action)) {
      return "settled";
    }
    if (const auto* contribute = std::get_if<Contribute>(&action)) {
      return "contribute " + Text(contribute->own);
    }
    if (const auto* await = std::get_if<AwaitAgreement>(&action)) {
      return "agree " + Text(await->own);
    }
    if (std::holds_alternative<CopyState>(action)) {
      return "copy";
    }
    if (const auto* returns = std::get_if<CommitReturns>(&action)) {
      const std::string stop = returns->stop == 0 ? "" : ", stop " + std::to_string(returns->stop);
      return (returns->committed ? "commit true" : "commit false") + stop;
    }
    if (const auto* open = std::get_if<Open>(&action)) {
      return "open " + ToString(open->roster.id.number) + (open->restored ? " restored" : "");
    }
    if (std::holds_alternative<Close>(action)) {
      return "close";
    }
    if (const auto* run = std::get_if<RunReturns>(&action)) {
      return run->left ? "left" : "returns";
    }
    return "fatal " + std::get<Fatal>(action).message;
  }
};

}  // namespace elastic::internal::worker_testing
