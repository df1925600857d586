#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/core/agent_core.h"
#include "rendezvous/core/membership.h"
#include "tests/sim/faults.h"
#include "worker_runtime/core/worker_core.h"

// The parties of a run: what surrounds each core.
namespace elastic::internal::sim {

// The control page of a worker; it outlives the process.
struct Page {
  CommitWord word;
  std::map<GenerationNumber, GenerationId> identity;
  Held held;
  uint64_t beats = 0;
};

// The program's thread of a worker.
enum class Program : uint8_t {
  kStarting,
  kInRun,
  kSyncing,
  kComputing,
  kReducing,  // in a world collective of its own
  kCommitting,
  kReturned
};

struct Request {  // for state, kept by a holder
  WorkerIncarnation asker;
  uint64_t token = 0;
  GenerationId generation;
};

// A process's way to the edges of one generation.
struct Links {
  std::set<WorkerIncarnation> dialled;  // the hello is there, or the edge stands
  std::set<WorkerIncarnation> broke;    // before it was used
  bool failed = false;                  // told, and not tried again since
  bool failed_once = false;
  uint64_t retry = 0;  // token of the newest
};

struct Process {
  WorkerIncarnation id;    // what it was spawned as; edges and requests name it so
  WorkerIncarnation name;  // what it knows to be
  int host = 0;
  int32_t slot = 0;
  int life = 0;  // of its agent
  bool alive = true, paused = false, page_kept = true, told_dead = false;
  bool busy = false;  // between a compare-exchange and the look after it, the lock held
  bool ready_told = false;
  bool late = false;  // takes long to start
  Injected paused_by;
  Page page;
  std::unique_ptr<WorkerCore> core;
  std::deque<std::function<void(Process&)>> backlog;
  Instant to_agent{}, to_worker{};  // both directions of its socket keep their order

  Program program = Program::kStarting;
  GenerationId call;
  bool call_over = false;
  Roster call_roster;
  uint64_t step = 0;     // newest step that the program's call has committed
  StateVersion copying;  // by the program, for a commit that was not answered yet
  std::optional<worker_action::Open> offered;
  std::set<GenerationNumber> synced;

  std::set<GenerationNumber> connected, told_up;
  std::map<GenerationNumber, std::map<WorkerIncarnation, uint64_t>> edges;  // token of the link
  std::map<GenerationNumber, Links> links;
  Until no_dial, no_answer;
  // What each rank contributed to each world collective of a generation.
  std::map<GenerationNumber, std::map<uint32_t, std::map<WorkerIncarnation, Agreement>>> heard;
  std::map<GenerationNumber, uint32_t> begun;
  std::set<GenerationNumber> used;  // its edges: what breaks from then on is a loss
  GenerationId awaiting;
  Agreement contribution;
  bool differed = false;  // the contributions of its newest agreement

  uint64_t fetch_token = 0;
  GenerationId fetch_generation;
  RosterEntry fetch_holder;
  Held fetch_offer;
  bool accepted = false;
  std::vector<Request> requests;
};

struct Host {
  std::string name;
  int32_t slots = 1;
  int life = 0;
  std::unique_ptr<AgentCore> agent;  // null: none runs
  bool paused = false, suspended = false;
  Injected paused_by;
  std::deque<std::function<void()>> backlog;
  std::optional<ConnectionId> connection;
  AgentIncarnation incarnation;
  ServerIncarnation server_seen;
  bool registered = false;
  Until cut_up, cut_down, guardian_stopped;
  std::map<int, Until> cut_to;  // data to that host is held up
  bool slow_next = false;       // the next process takes long to start
  Injected slow_by;
  std::optional<Instant> kill_at, wake_at;
  std::map<uint64_t, Instant> reports;  // when they were sent
  Instant acknowledged{};               // sending of the newest one that was answered
  GenerationNumber claimed_closed;      // in a report of this life
  std::set<WorkerIncarnation> claimed_dead;
};

struct Server {
  std::unique_ptr<Membership> core;  // null: down
  int life = 0;
  bool paused = false;
  std::deque<std::function<void()>> backlog;
  std::map<ConnectionId, std::pair<int, int>> connections;  // host index, agent life
  std::optional<Instant> wake_at;
  std::map<int, ConnectionId> newest;  // admitted connection of a host
  int under_way = 0;                   // messages to it
  Injected paused_by, stopped_by;
  std::set<int> heard;  // hosts that have reported to this life of it
  bool settled = true;  // all of them have, since it started
  std::map<int, GenerationNumber> answered;
  GenerationNumber closed;      // as told in its directives
  std::optional<Roster> drain;  // it crashes soon; see BeginDrain()
};

}  // namespace elastic::internal::sim
