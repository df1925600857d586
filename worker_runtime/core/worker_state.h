#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker_runtime/core/worker_core.h"

namespace elastic::internal {

// Where the program's commit() is. Every stage but kIdle ends with CommitReturns.
enum class CommitStage : uint8_t {
  kIdle,
  kAwaiting,   // no agreement since the last commit yet: one is being made
  kMarking,    // compare-exchange that sets `committing`
  kCopying,    // the program's thread fills the spare buffer; nothing can stop this commit any more
  kFinishing,  // compare-exchange to the next number
  kCrossing,   // compare-exchange into the prepared successor
  kDrained,    // passed the boundary and is no member of the successor: waits to be told to leave
};

// How far the state that came is taken. The agent must not read what is held in the middle of it,
// so `committing` stands in the word, as while a commit is copied.
enum class TakeStage : uint8_t { kNone, kMarking, kTaking, kClearing };

// A request for the resume version, to one holder after the other.
struct FetchState {
  GenerationId generation;  // invalid: none under way
  std::vector<RosterEntry> holders;
  size_t next = 0;
  size_t failures = 0;
  bool accepted = false;
  Held came;
  TakeStage taking = TakeStage::kNone;
};

// What has failed of a generation's edges since they stood last, or since it was entered.
struct EdgeTries {
  int failures = 0;
  std::map<std::optional<WorkerIncarnation>, int> by_cause;  // a peer, or this side; inside only
};

// All of WorkerCore's memory and its transitions; each worker_*.cc file has those of one subject.
struct WorkerCore::State {
  explicit State(WorkerIncarnation own) : self(own) {}

  // One handler per event.
  void On(const worker_event::RosterCame& event);
  void On(const worker_event::WordSeen& event);
  void On(const worker_event::EdgesUp& event);
  void On(const worker_event::EdgesLost& event);
  void On(const worker_event::EdgesFailed& event);
  void On(const worker_event::PeerBroken& event);
  void On(const worker_event::StateOffered& event);
  void On(const worker_event::StateCame& event);
  void On(const worker_event::StateTaken& event);
  void On(const worker_event::TransferStopped& event);
  void On(const worker_event::FetchFailed& event);
  void On(const worker_event::CommitWanted& event);
  void On(const worker_event::CollectiveWanted& event);
  void On(const worker_event::Agreed& event);
  void On(const worker_event::StopWanted& event);
  void On(const worker_event::CopyDone& event);
  void On(const worker_event::FunctionReturned& event);
  void On(const worker_event::FinishRecorded& event);
  void On(const worker_event::LeaveTold& event);
  void On(const worker_event::OfferedAgain& event);

  template <class Action>
  void Emit(Action action) {
    actions.emplace_back(std::move(action));
  }
  void Fail(std::string message);
  void FailProgram(std::string message);

  // worker_word.cc
  void EmitCas(CommitWord to, const GenerationId& generation);
  void ResolveCas(const worker_action::Cas& cas);
  void ResolveMarking(const worker_action::Cas& cas);
  void ResolveFinishing(const worker_action::Cas& cas);
  void ResolveCrossing(const worker_action::Cas& cas);
  void ResolveTaking(const worker_action::Cas& cas);
  void ForgetOldRosters();
  void CloseIfOver();

  // worker_enter.cc
  const Roster* RosterOfWord() const;
  bool ShouldConnect(const Roster& roster) const;
  void Advance();
  void BeginEntering(const Roster& roster);
  void Enter(const Roster& roster);

  // worker_edges.cc
  void GiveUpEdge(const worker_event::EdgesFailed& event);
  void HurryEdges(const GenerationId& generation);
  void ForgetEdges(GenerationNumber up_to);

  // worker_restore.cc
  void StartFetch(const Roster& roster);
  void FetchNext();
  const RosterEntry& Asked() const;

  // worker_commit.cc
  const Agreement& Contribution();
  void MarkCommit();
  void NextInterval();
  void EndCommit(bool committed);
  void LeaveIfStopped();

  WorkerIncarnation self;
  WorkerActions actions;  // of the step under way

  CommitWord word;  // as last seen; number 0: outside, commits: numbers closed to this newcomer
  GenerationId word_id;
  Held held;
  std::map<GenerationNumber, Roster> rosters;  // of the word's number or later
  std::set<GenerationNumber> connecting;       // Connect was given out, not disconnected since
  std::set<GenerationNumber> edges_up;
  std::map<GenerationNumber, EdgeTries> edge_tries;

  GenerationId entering;  // the word names it, Open not given out yet
  bool state_ready = false;
  FetchState fetch;

  GenerationId call;        // generation that the program's call computes in; invalid: none
  GenerationId continuing;  // prepared successor entered in commit(), before its Open
  std::set<WorkerIncarnation> accused;
  // Between two commits, or from entering to the first one.
  std::optional<Agreement> contributed;
  std::optional<Agreement> agreed;
  uint32_t stop_wanted = 0;  // kStopBy*; for good
  bool old_connections = false;

  CommitStage stage = CommitStage::kIdle;
  GenerationId committing;  // generation of the commit under way
  uint32_t boundary = 0;    // prepared number that this commit is the boundary to
  uint32_t stop = 0;        // agreed by this commit
  std::optional<worker_action::Cas> pending_cas;

  GenerationId finished_in;  // newest generation in which ReportFinished was given out
  bool finished = false;     // and it is still the one
  bool ended = false;        // RunReturns or Fatal was given out
};

}  // namespace elastic::internal
