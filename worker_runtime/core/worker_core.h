#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/base/report.h"

namespace elastic::internal {

// The worker's side of the protocol: which generation this process is in, when it may commit, when
// it enters a successor, whom it fetches the state from, when its function is called again and when
// it is finished (P5-P8, P15, P18, P25, P26, P29). Pure: the runtime's two threads feed it under
// one lock and carry out its actions; the simulator runs the same code.

// ---- events ------------------------------------------------------------------------------------
namespace worker_event {
struct RosterCame {
  Roster roster;
};  // installed or prepared, from the agent
// The commit word and its identity were reread: after a bell, a Cas action, or on entering.
struct WordSeen {
  CommitWord word;
  GenerationId generation;
};
struct EdgesUp {
  GenerationId generation;
};  // all connections of that roster stand
struct PeerBroken {
  GenerationId generation;
  WorkerIncarnation peer;
};  // reset, refused or EOF
// The holder answered the fetch: it is in `generation` (for a prepared one: passed the boundary)
// and offers `state`, which is the resume version.
struct StateOffered {
  GenerationId generation;
  Held state;
};
struct StateTaken {
  GenerationId generation;
  Held state;
};  // received, verified, held on the page
struct FetchFailed {
  GenerationId generation;
  WorkerIncarnation holder;
};
struct CommitWanted {};  // the program calls commit()
// The 8-byte world collective begun by the commit before is complete: smallest and largest id.
struct Agreed {
  GenerationId generation;
  uint32_t smallest = 0;
  uint32_t largest = 0;
};
struct CopyDone {
  Held state;
};  // spare buffer complete, page's held written
struct FunctionReturned {
  Held state;
};  // newest committed state of this worker
struct FinishRecorded {
  FinishRecord record;
};
struct LeaveTold {};
}  // namespace worker_event
using WorkerEvent =
    std::variant<worker_event::RosterCame, worker_event::WordSeen, worker_event::EdgesUp,
                 worker_event::PeerBroken, worker_event::StateOffered, worker_event::StateTaken,
                 worker_event::FetchFailed, worker_event::CommitWanted, worker_event::Agreed,
                 worker_event::CopyDone, worker_event::FunctionReturned,
                 worker_event::FinishRecorded, worker_event::LeaveTold>;

// ---- actions -----------------------------------------------------------------------------------
namespace worker_action {
struct Connect {
  Roster roster;
};  // dial and accept all edges, in parallel
struct Disconnect {
  GenerationNumber up_to;
};  // abort communicators and dials up to it
struct Fetch {
  Roster roster;
  RosterEntry holder;
};  // ask for the resume version
struct AcceptState {
  GenerationId generation;
};  // go on with the offered transfer
// Write the identity slot, compare-exchange the word, then feed WordSeen at once.
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
// Contribute {id, ~id} to the 8-byte collective of this generation, begun now (P6, P25).
struct BeginAgreement {
  GenerationId generation;
  uint32_t prepared_id = 0;
};
struct AwaitAgreement {
  GenerationId generation;
};  // the program's thread waits for Agreed
struct CopyState {
  StateVersion version;
};  // commit: flip or copy into the spare buffer
struct CommitReturns {
  bool committed = false;
};  // false: the generation is over
// The program may compute in this generation: `run` calls the function (again if `restored`: drop
// `next`, start from the committed state; false: the same call goes on after a commit boundary).
struct Open {
  Roster roster;
  bool restored = false;
};
struct Close {
  GenerationId generation;
};  // collectives fail with ABORTED from here on
struct RunReturns {
  bool left = false;
};  // recorded, or told to leave: exit 0
struct Fatal {
  std::string message;
};  // an error of the program or the protocol
}  // namespace worker_action
using WorkerAction =
    std::variant<worker_action::Connect, worker_action::Disconnect, worker_action::Fetch,
                 worker_action::AcceptState, worker_action::Cas, worker_action::ReportEntered,
                 worker_action::ReportAccusation, worker_action::ReportFinished,
                 worker_action::ReportWordSettled, worker_action::BeginAgreement,
                 worker_action::AwaitAgreement, worker_action::CopyState,
                 worker_action::CommitReturns, worker_action::Open, worker_action::Close,
                 worker_action::RunReturns, worker_action::Fatal>;
using WorkerActions = std::vector<WorkerAction>;

class WorkerCore {
 public:
  explicit WorkerCore(WorkerIncarnation self);
  ~WorkerCore();
  WorkerCore(const WorkerCore&) = delete;
  WorkerCore& operator=(const WorkerCore&) = delete;

  WorkerActions Step(const WorkerEvent& event);

  Phase phase() const;
  const Roster* current() const;  // roster of the generation the word names; null outside
  std::vector<std::string> BrokenInvariants() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace elastic::internal
