#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/core/agent_store.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// Decisions of one host's agent: which words are fenced or reset, which processes are spawned or
// killed, what is reported, how long workers may live without a server. Pure like Membership.
// Safety rests on it as much as on the server (P5, P10-P14, P20-P24), so it runs in the simulator.

struct AgentSettings {
  std::string host;
  int32_t slots = 1;
  Duration orphan_limit = kOrphanLimitInProcess;
  Duration grace_period = kGracePeriodDefault;
};

// What the driver read from a worker's control page, always after carrying out the actions before.
// It is fed as PageRead after each Fence and Reset, before Entered, Finished and Leaving, for
// kWordSettled, and for every worker before a heartbeat's MakeReport.
struct PageReading {
  CommitWord word;
  GenerationId generation;  // identity slot that belongs to word.generation; invalid if none
  Held held;
  Phase phase = Phase::kStarting;
  uint64_t beats = 0;
  friend bool operator==(const PageReading&, const PageReading&) = default;
};

// Events and actions name a process by the incarnation that it was spawned as, whatever it has been
// offered again as since (P20); its page, its socket and its end are the same.

// ---- events ------------------------------------------------------------------------------------
namespace agent_event {
struct Registered {
  AgentIncarnation agent;
  ServerIncarnation server = {};
};  // that server admitted this stream
struct StreamLost {};
struct DirectiveCame {
  Directive directive;
};
struct Spawned {
  WorkerIncarnation process;
  int64_t pid = 0;
};
struct SpawnFailed {
  WorkerIncarnation process;
  std::string message;
  bool hopeless = false;
};
struct Ready {
  WorkerIncarnation process;
  Endpoint data;
};  // worker declared readiness
struct Entered {
  WorkerIncarnation process;
  GenerationId generation;
};
struct Accused {
  WorkerIncarnation process;
  Accusation accusation;
};
struct Finished {
  WorkerIncarnation process;
  GenerationId generation;
  Held state;
};
struct ProgramFailed {
  WorkerIncarnation process;
  std::string message;
};  // it gives up, and every other life of the program would too
struct Leaving {
  WorkerIncarnation process;
};  // its runtime was shut down on purpose: the owner mutex was unlocked; may come twice
struct PageRead {
  WorkerIncarnation process;
  PageReading reading;
};
struct OwnerDied {
  WorkerIncarnation process;
  PageReading reading;
};  // robust futex fired
struct Exited {
  WorkerIncarnation process;
  ExitStatus status;
  PageReading reading;
};
struct BeatMissed {
  WorkerIncarnation process;
  char process_state = 'R';
};  // of /proc/PID/stat
struct LauncherGone {
  std::string reason;
};  // P21: bootstrap input closed
struct Refused {
  StatusCode code;  // kAborted: a newer agent of this host has registered (P2)
  std::string message;
};  // the server ended the stream for good
// Calls of the worker's program; the page is read before, since its word says where it may.
struct PutCame {
  WorkerIncarnation process;
  uint32_t request = 0;
  StorePut put;
};
struct GetCame {
  WorkerIncarnation process;
  uint32_t request = 0;
  StoreKey key;
};
struct CopiesServed {
  Endpoint endpoint;
};  // copy server listens there
struct TimePassed {};
}  // namespace agent_event
using AgentEvent =
    std::variant<agent_event::Registered, agent_event::StreamLost, agent_event::DirectiveCame,
                 agent_event::Spawned, agent_event::SpawnFailed, agent_event::Ready,
                 agent_event::Entered, agent_event::Accused, agent_event::Finished,
                 agent_event::Leaving, agent_event::ProgramFailed, agent_event::PageRead,
                 agent_event::OwnerDied, agent_event::Exited, agent_event::BeatMissed,
                 agent_event::LauncherGone, agent_event::Refused, agent_event::PutCame,
                 agent_event::GetCame, agent_event::CopiesServed, agent_event::TimePassed>;

// ---- actions -----------------------------------------------------------------------------------
namespace agent_action {
// fetch_or the fenced bit if the word's generation is `expected`, ring the bell, reread the page
// and feed PageRead before anything else.
struct Fence {
  WorkerIncarnation process;
  GenerationNumber expected;
};
// Write the identity slot if `generation` is valid, then compare-exchange the word from `from` to
// `to`, ring the bell, reread and feed PageRead. Only from fenced, non-committing words or words of
// number 0 (P24). `to` is {generation.number, 0}; with the fenced bit when that number is closed
// already, so that the word is never open in a closed number. For a worker outside (generation
// invalid) `to` is {0, closed}: its commits field says up to which number it may not enter a
// prepared generation by itself, and a compare-exchange from an older such word fails (P12).
struct Reset {
  WorkerIncarnation process;
  CommitWord from;
  GenerationId generation;
  CommitWord to;
};
struct DeliverRoster {
  WorkerIncarnation process;
  Roster roster;
  int32_t rank = -1;  // of this worker; -1: not a member
};
// The process is another incarnation from now on: tell it so, and name its copy by it. Its word was
// reset to outside just before; what it holds stays.
struct OfferAgain {
  WorkerIncarnation process;
  WorkerIncarnation incarnation;
};
struct DeliverFinish {
  WorkerIncarnation process;
  FinishRecord record;
};
struct TellLeave {
  WorkerIncarnation process;
};  // please exit 0 without a generation
struct AnswerStore {
  AgentStore::Answer answer;
};
// The job is being stopped: a runtime that computes in no generation leaves, others agree on a
// step.
struct TellStop {
  WorkerIncarnation process;
};
struct Spawn {
  WorkerIncarnation process;
  int32_t slot = 0;
};
struct Kill {
  WorkerIncarnation process;
  int signal = 9;
};  // the process and its descendants
struct Forget {
  WorkerIncarnation process;
};                 // unmap the page, drop the state's memory
struct Report {};  // AgentCore::MakeReport changed: send it
struct StampDeadline {
  Instant kill_at;
};  // for the guardian and every worker page (P23)
struct Say {
  Severity severity = Severity::kInfo;
  std::string text;
};
struct EndAgent {
  int exit_code = 0;
};  // all workers are gone
}  // namespace agent_action
using AgentAction =
    std::variant<agent_action::Fence, agent_action::Reset, agent_action::OfferAgain,
                 agent_action::DeliverRoster, agent_action::DeliverFinish, agent_action::TellLeave,
                 agent_action::AnswerStore, agent_action::TellStop, agent_action::Spawn,
                 agent_action::Kill, agent_action::Forget, agent_action::Report,
                 agent_action::StampDeadline, agent_action::Say, agent_action::EndAgent>;
using AgentActions = std::vector<AgentAction>;

class AgentCore {
 public:
  AgentCore(AgentSettings settings, Instant now);
  ~AgentCore();
  AgentCore(const AgentCore&) = delete;
  AgentCore& operator=(const AgentCore&) = delete;

  // The driver carries out the actions in order; a Fence or Reset is followed by a PageRead event
  // at once (within the carrying out), whose actions are appended to the queue.
  AgentActions Step(Instant now, const AgentEvent& event);
  std::optional<Instant> NextDeadline() const;
  // The newest report; the sequence number grows with each call.
  AgentReport MakeReport(Instant now);
  std::vector<std::string> BrokenInvariants() const;

  struct State;  // agent_state.h

 private:
  std::unique_ptr<State> state_;
};

}  // namespace elastic::internal
