#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/commit_word.h"
#include "rendezvous/base/ids.h"
#include "rendezvous/base/roster.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

// What agents and the server tell each other (P24): whole states, never events. Any message may be
// lost, repeated, delayed or cut; the newest one repairs it. Both pure cores speak these structs;
// rendezvous/client and rendezvous/server translate them to protobuf.

// Where a worker's runtime is, stamped on its control page; for people, tests and benchmarks.
enum class Phase : uint8_t {
  kUnspecified = 0,
  kOutside = 1,  // in the user's code
  kInCollective = 2,
  kCommitting = 3,
  kEntering = 4,   // dialling edges of a new generation, or waiting for one
  kRestoring = 5,  // taking or copying the resume version
  kStarting = 6,   // before it declared readiness
  kWaiting = 7,    // ready, in no generation
  kFinished = 8,   // reported finished, waits for the record
};

enum class WorkerLife : uint8_t {
  kUnspecified = 0,
  kStarting = 1,  // process runs, has not declared readiness
  kWaiting = 2,   // declared readiness: may be put into a generation
  kMember = 3,    // its word names a generation
  kDead = 4,      // reported dead and killed: always true (P13)
};

enum class DeathCause : uint8_t {
  kUnspecified = 0,
  kExited = 1,          // it exited, or has left the job to exit by itself
  kOwnerDied = 2,       // robust futex fired; status may follow
  kStopped = 3,         // state T at the first missed beat
  kMarkedByServer = 4,  // removed: entry time-out, broken link, drained and not entered
  kNeverJoined = 5,     // exited before it ever connected
  kOfferedAgain = 6,    // the process lives on as a newer incarnation and has what this one held
};

// wait status of a process in the shell's manner.
struct ExitStatus {
  bool signalled = false;
  int32_t code = 0;  // exit code, or signal number
  bool ok() const { return !signalled && code == 0; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
std::string ToString(const ExitStatus& status);  // `exit code 3`, `signal 9 (SIGKILL)`

struct Accusation {
  GenerationId generation;  // the reporter's, unmarked when it saw the reset (P18)
  WorkerIncarnation accused;
  friend bool operator==(const Accusation&, const Accusation&) = default;
};

// One worker in an agent's report. Stays in the reports after death until the server says that it
// may be forgotten (Directive::forget).
struct WorkerReport {
  WorkerIncarnation incarnation;
  int32_t slot = 0;
  int64_t pid = 0;
  WorkerLife life = WorkerLife::kStarting;
  CommitWord word;          // as read after the newest fence that the agent applied
  GenerationId generation;  // full identity on the page that belongs to `word`
  Held held;
  bool entered = false;          // the runtime acknowledged entering `word.generation`
  bool joined = false;           // ever declared readiness through the runtime
  std::optional<Held> finished;  // function returned, in the generation of `word`, with this state
  Endpoint data;                 // its data listener, once ready
  Phase phase = Phase::kStarting;  // newest seen; of a dead worker: at death
  Duration beat_age{0};  // since the newest beat when the report was made; for status only
  std::vector<Accusation> accusations;          // of its current generation
  DeathCause cause = DeathCause::kUnspecified;  // when dead
  std::optional<ExitStatus> exit;               // when reaped
  bool released = false;  // left in order (drained, told to exit): exit 0 is no failure
  // What every life of the program would do wrong again; the job ends with it.
  std::optional<std::string> program_error;
  friend bool operator==(const WorkerReport&, const WorkerReport&) = default;
};

// Told that a member is lost (P12).
struct Mark {
  GenerationNumber generation;
  WorkerIncarnation dead;
  auto operator<=>(const Mark&) const = default;
};

// What the members of a generation leave for each other under a key: it lives and dies with the
// generation, and does not change once it is there.
struct StoreKey {
  GenerationId generation;
  std::string name;
  auto operator<=>(const StoreKey&) const = default;
};
struct StorePut {
  StoreKey key;
  std::string value;
  friend bool operator==(const StorePut&, const StorePut&) = default;
};
enum class StoreVerdict : uint8_t {
  kUnspecified = 0,
  kStored = 1,   // these bytes stand under the key
  kDiffers = 2,  // other bytes stand there
  kFull = 3,     // kStoreKeysMax or kStoreBytesMax is reached
  kOver = 4,     // so is the generation
};
struct StoreAnswer {
  StoreKey key;
  uint64_t digest = 0;  // HashBytes of the value that the answer is about
  StoreVerdict verdict = StoreVerdict::kUnspecified;
  friend bool operator==(const StoreAnswer&, const StoreAnswer&) = default;
};

enum class StopMode : uint8_t {
  kUnspecified = 0,
  kNone = 1,
  kGraceful = 2,   // SIGTERM to every worker at once, grace period, SIGKILL
  kImmediate = 3,  // SIGKILL
};

// The record that all members of one generation reported the same final version (P29).
struct FinishRecord {
  GenerationId generation;
  Held final_state;
  friend bool operator==(const FinishRecord&, const FinishRecord&) = default;
};

// What an agent was told by servers of this job: all that a new one without a record can learn
// (P1).
struct Memory {
  std::vector<Roster> rosters;  // in the order of their numbers
  std::optional<FinishRecord> finished;
  StopMode stop = StopMode::kNone;
  std::string stop_reason;
  int32_t stop_exit_code = 0;
  // A server that knew the job's past has spoken to it, so that agents before it need not.
  bool told_all = false;
  friend bool operator==(const Memory&, const Memory&) = default;
};

struct AgentReport {
  std::string host;
  AgentIncarnation agent;
  uint64_t sequence = 0;         // grows with each report of this incarnation
  uint64_t acked_directive = 0;  // newest Directive::sequence that was applied
  GenerationId installed;        // newest installed roster applied
  GenerationId prepared;         // newest prepared roster handed to workers
  GenerationNumber closed;       // every number up to it is over here: words fenced
  std::vector<Mark> marks;
  Endpoint copies;                         // where this agent serves committed copies
  std::vector<WorkerReport> workers;       // in incarnation order
  std::optional<std::string> spawn_error;  // the command cannot be started on this host (exit 2)
  ServerIncarnation server;      // newest one that had welcomed this agent or told it something
  std::optional<Memory> memory;  // until `server` has acknowledged a report
  std::vector<StorePut> puts;    // by workers of this host, not answered by this server yet
  std::vector<StoreKey> wanted;  // values that they wait for
  friend bool operator==(const AgentReport&, const AgentReport&) = default;
};

// What one host's agent should bring about: the server's side of the stream.
struct Directive {
  ServerIncarnation server;
  AgentIncarnation agent;     // whom it is for; older agent incarnations on that host must die
  uint64_t sequence = 0;      // grows with each directive of this server to this agent
  uint64_t acked_report = 0;  // newest AgentReport::sequence applied: the heartbeat's answer
  std::optional<Roster> installed;
  std::optional<Roster> prepared;
  GenerationNumber closed;
  std::vector<Mark> marks;
  std::vector<int32_t> slots;             // that should have a live worker
  bool spawn_allowed = true;              // false while re-forming (kSpawnHold at most)
  std::vector<WorkerIncarnation> remove;  // removed: kill, never part of a generation again
  // Were members when their host fell silent and are none any more: offer the live processes again
  // as newcomers (P20).
  std::vector<WorkerIncarnation> offer_again;
  std::vector<WorkerIncarnation> forget;  // exit counted, copy not needed: drop entry and memory
  std::optional<FinishRecord> finished;   // workers that are not of its generation exit 0
  StopMode stop = StopMode::kNone;
  std::string stop_reason;
  int32_t stop_exit_code = 0;            // the job's, when it stops
  bool relearning = false;               // the server does not know the job's past yet (P1)
  std::vector<StoreAnswer> put_answers;  // to the puts of the report acknowledged here
  std::vector<StorePut> values;          // of its wanted ones, as far as they are there
  friend bool operator==(const Directive&, const Directive&) = default;
};

}  // namespace elastic::internal
