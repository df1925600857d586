#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/base/log.h"
#include "rendezvous/base/report.h"
#include "rendezvous/core/job.h"

namespace elastic::internal {

// One agent stream of the driver; unique for the server's life.
struct ConnectionId {
  uint64_t value = 0;
  auto operator<=>(const ConnectionId&) const = default;
};

// ---- events: what happened -------------------------------------------------------------------

// An agent opened its stream. `previous` is set when it reconnects within its own life.
struct AgentConnected {
  ConnectionId connection;
  std::string host;
  int32_t slots = 1;
  AgentIncarnation previous;
  // Newest server that it has heard; one older than that is deposed (P2).
  ServerIncarnation seen = {};
  // The launcher has started an agent on this host before, of which this one knows nothing.
  bool replaces = false;
};
struct AgentReported {
  ConnectionId connection;
  AgentReport report;
};
// FIN, RST or cancellation (P22).
struct AgentDisconnected {
  ConnectionId connection;
};
// The launcher could not start an agent, or it ended and is started again (informs waits only).
struct AgentStartFailed {
  std::string host;
  std::string message;
};
// Ctrl-C, SIGTERM, or the launcher's own failure. `exit` is what the job ends with.
struct StopRequested {
  StopMode mode = StopMode::kGraceful;
  std::string reason;
  int exit_code = 130;
};
// A standing server alone: its launcher is not there, or is back. One that stays away has ended,
// and its agents with it.
struct LauncherWent {};
struct LauncherCame {};
// NextDeadline() has come.
struct TimePassed {};
using Event = std::variant<AgentConnected, AgentReported, AgentDisconnected, AgentStartFailed,
                           StopRequested, LauncherWent, LauncherCame, TimePassed>;

// ---- actions: what the driver must do, in the order given -------------------------------------

// Write conditionally on this server's incarnation still being the newest (P2). If it is refused
// the driver stops the server and carries out none of the actions that follow.
struct JournalRecord {
  ServerIncarnation server;
  GenerationNumber numbers_reserved;  // every generation number up to it may have been used
  AgentIncarnation agents_reserved;
  std::optional<Roster> installed;
  std::optional<Roster> parent;  // of an installed one that was prepared (V6, P26)
  std::vector<Roster> prepared;  // every successor of `installed` that was ever sent, newest last
  std::optional<FinishRecord> finished;
};
struct Persist {
  JournalRecord record;
};
// The stream is accepted as this incarnation of the agent. An older stream of the same incarnation
// may be closed; that of an older one has been refused before.
struct AdmitAgent {
  ConnectionId connection;
  AgentIncarnation agent;
};
// Close the stream; `message` tells the agent why (superseded, unknown host, job over).
struct RefuseAgent {
  ConnectionId connection;
  Status reason;
};
// Directive(host) changed: send the newest one when the stream can take it.
struct Publish {
  std::string host;
};
// One line for people.
struct Note {
  Severity severity = Severity::kInfo;
  std::string text;
};
// The job is over. Emitted once, after the last workers are known to be gone or given up.
struct EndJob {
  int exit_code = 0;
  std::string reason;
};
using Action = std::variant<Persist, AdmitAgent, RefuseAgent, Publish, Note, EndJob>;
using Actions = std::vector<Action>;

// ---- the machine -------------------------------------------------------------------------------

// Membership of one job: which workers form a generation, when it is over, what its successor
// resumes from, and when the job is finished. Pure: no clock, thread, log or I/O; equal inputs give
// equal actions (style rules 1-4). Follows PROTOCOL.md, P1-P30.
class Membership {
 public:
  // `incarnation` was reserved durably by the driver; `restored` is the journal's newest record.
  // Without one, any but the first incarnation lets the agents speak first (membership_relearn.cc).
  Membership(JobSpec spec, ServerIncarnation incarnation, std::optional<JournalRecord> restored,
             Instant now);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Actions Step(Instant now, const Event& event);
  // When TimePassed is due next; nullopt: nothing waits for time.
  std::optional<Instant> NextDeadline() const;

  // The newest directive for a host's agent; nullopt before it is admitted. `sequence` grows with
  // each call (the core numbers what it gives out), and acked_report is up to date.
  std::optional<Directive> DirectiveFor(const std::string& host, Instant now);
  JobView View(Instant now) const;
  // Checks the numbered invariants of invariants.cc on the present state; empty when all hold.
  std::vector<std::string> BrokenInvariants() const;

  struct State;  // membership_state.h; shared by the membership_*.cc files, one per event

 private:
  std::unique_ptr<State> state_;
};

}  // namespace elastic::internal
