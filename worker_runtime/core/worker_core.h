#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/base/agreement.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

// The worker's side of the protocol: which generation this process is in, when it may commit, when
// it enters a successor, whom it fetches the state from, when its function is called again and when
// it is finished (P5-P8, P15, P18, P25, P26, P29). Pure: the runtime's two threads feed it under
// one lock and carry out its actions; the simulator runs the same code. README.md beside this file
// has the sequences (start, commit, boundary, loss, growth, finish) call by call, and says which
// thread carries out which action.

// ---- events ------------------------------------------------------------------------------------
namespace worker_event {
// Installed or prepared, from the agent; in any order with WordSeen, and possibly twice.
struct RosterCame {
  Roster roster;
};
// The commit word and its identity were reread: after a bell, a Cas action, or on entering.
struct WordSeen {
  CommitWord word;
  GenerationId generation;
};
struct EdgesUp {
  GenerationId generation;
};  // all connections of that roster stand
// They stand no longer: one broke, unused, or is being made anew from the other side.
struct EdgesLost {
  GenerationId generation;
};
// An edge of a mesh that nobody here has used did not come up, or broke. What stands is kept.
struct EdgesFailed {
  GenerationId generation;
  std::optional<WorkerIncarnation> peer;  // at the other end, if it may be at fault
  bool over_there = false;                // it says that the generation is over: nobody's fault
  std::string what;                       // for people: which edge, the cause, the knob for it
};
// A connection in use ended or was reset.
struct PeerBroken {
  GenerationId generation;
  WorkerIncarnation peer;
};
// The holder answered the fetch: it is in `generation` (for a prepared one: passed the boundary)
// and offers `state`, which is the resume version.
struct StateOffered {
  GenerationId generation;
  Held state;
};
// Received and verified; it lies in the spare buffer, and nothing says yet that it is held.
struct StateCame {
  GenerationId generation;
  Held state;
};
struct StateTaken {
  Held state;
};  // the page says that it is held
// The accepted transfer was ended before it had filled the memory, which the program wants back: to
// be asked for again, and no failure of the holder.
struct TransferStopped {
  GenerationId generation;
};
struct FetchFailed {
  GenerationId generation;
  WorkerIncarnation holder;
};
// The program calls commit(). `generation` is that of the Open which the running call of the
// program's function was started or continued with: a call that has not noticed yet that its
// generation is over gets CommitReturns{false}, even if the runtime has entered the next one.
struct CommitWanted {
  GenerationId generation;
};
// The program is about to enter a world collective of its own. `generation` as in CommitWanted.
struct CollectiveWanted {
  GenerationId generation;
};
// A world collective is complete, the program's or that of AwaitAgreement: what all ranks
// contributed. The first one after each commit counts.
struct Agreed {
  GenerationId generation;
  Agreement agreement;
};
// Somebody wants the job to stop: kStopBy* (agreement.h).
struct StopWanted {
  uint32_t by = 0;
};
struct CopyDone {
  Held state;
};  // spare buffer complete, page's held written
// `state`: newest committed state of this worker. `generation` as in CommitWanted: a return out of
// a generation that is over is ignored, the function is called again by the next Open.
struct FunctionReturned {
  Held state;
  GenerationId generation;
};
struct FinishRecorded {
  FinishRecord record;
};
struct LeaveTold {};
// This process is another worker from now on: a newcomer that keeps what it holds (P20). Its word
// was reset to outside before, and is seen (WordSeen) before this.
struct OfferedAgain {
  WorkerIncarnation self;
};
}  // namespace worker_event
using WorkerEvent =
    std::variant<worker_event::RosterCame, worker_event::WordSeen, worker_event::EdgesUp,
                 worker_event::EdgesLost, worker_event::EdgesFailed, worker_event::PeerBroken,
                 worker_event::StateOffered, worker_event::StateCame, worker_event::StateTaken,
                 worker_event::TransferStopped, worker_event::FetchFailed,
                 worker_event::CommitWanted, worker_event::CollectiveWanted, worker_event::Agreed,
                 worker_event::StopWanted, worker_event::CopyDone, worker_event::FunctionReturned,
                 worker_event::FinishRecorded, worker_event::LeaveTold, worker_event::OfferedAgain>;

// ---- actions -----------------------------------------------------------------------------------
namespace worker_action {
struct Connect {
  Roster roster;
};  // dial and accept all edges, in parallel
// After `after`, make the edges of that generation anew which do not stand. A newer one for the
// same generation replaces it.
struct RetryEdges {
  GenerationId generation;
  Duration after{};
};
// Abort and destroy communicators, dials and fetches of generations up to it. Until then their
// connections stay open, even after Close: a connection closed earlier would look to a peer that is
// not fenced yet like the loss of this worker.
struct Disconnect {
  GenerationNumber up_to;
};
// Ask for the resume version. Replaces a fetch that is under way, of whatever generation.
struct Fetch {
  Roster roster;
  RosterEntry holder;
};
// Go on with the offered transfer. It fills the spare buffer, so the runtime begins it only when
// the program's call is back in `run`, and feeds StateCame or FetchFailed in the end.
struct AcceptState {
  GenerationId generation;
};
// Make the spare buffer the committed one and say on the page that it is held, then feed StateTaken
// at once. `committing` stands in the word meanwhile: a fence is answered before or after it (P5).
struct TakeState {
  Held state;
};
// Write the identity slot (not for the word's present generation), compare-exchange the word, then
// feed WordSeen at once, before any other event: carried out under the lock by whoever got it.
struct Cas {
  CommitWord from;
  CommitWord to;
  GenerationId generation;
};
struct ReportEntered {
  GenerationId generation;
};
struct ReportAccusation {
  Accusation accusation;
};
struct ReportFinished {
  GenerationId generation;
  Held state;
};
struct ReportWordSettled {};  // fenced while committing, and now final
// What this rank contributes to the world collectives from now on (P25). Follows CollectiveWanted
// when it changes.
struct Contribute {
  Agreement own;
};
// The program has made no world collective since its last commit: its thread makes one that has no
// data, contributing `own`, and waits for it: Agreed (P6).
struct AwaitAgreement {
  GenerationId generation;
  Agreement own;
};
struct CopyState {
  StateVersion version;
};  // commit: flip or copy into the spare buffer
struct CommitReturns {
  bool committed = false;  // false: the generation is over
  uint32_t stop = 0;       // who wants the job to stop, as agreed by all ranks of this commit
};
// The program may compute in this generation: `run` calls the function (again if `restored`: drop
// `next`, start from the committed state; false: the same call goes on after a commit boundary).
// With `restored` and a roster without a resume version the runtime first broadcasts rank 0's
// initial state over the program's communicator and commits version 0 (P7), then calls it.
struct Open {
  Roster roster;
  bool restored = false;
};
// Collectives fail with ABORTED from here on; connections stay open until Disconnect.
struct Close {
  GenerationId generation;
};
struct RunReturns {
  bool left = false;
};  // recorded, or told to leave: exit 0
// For the log.
struct Warn {
  std::string message;
};
// An error after which this worker can do nothing more.
struct Fatal {
  std::string message;
  bool of_program = false;  // every life of the program would make it again
};
}  // namespace worker_action
using WorkerAction =
    std::variant<worker_action::Connect, worker_action::RetryEdges, worker_action::Disconnect,
                 worker_action::Fetch, worker_action::AcceptState, worker_action::TakeState,
                 worker_action::Cas, worker_action::ReportEntered, worker_action::ReportAccusation,
                 worker_action::ReportFinished, worker_action::ReportWordSettled,
                 worker_action::Contribute, worker_action::AwaitAgreement, worker_action::CopyState,
                 worker_action::CommitReturns, worker_action::Open, worker_action::Close,
                 worker_action::RunReturns, worker_action::Warn, worker_action::Fatal>;
using WorkerActions = std::vector<WorkerAction>;

class WorkerCore {
 public:
  explicit WorkerCore(WorkerIncarnation self);
  ~WorkerCore();
  WorkerCore(const WorkerCore&) = delete;
  WorkerCore& operator=(const WorkerCore&) = delete;

  WorkerActions Step(const WorkerEvent& event);

  Phase phase() const;
  // A prepared successor waits for this rank to reach its boundary, or somebody wants the job to
  // stop: a commit soon helps others.
  bool CommitWanted() const;
  std::vector<std::string> BrokenInvariants() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace elastic::internal
