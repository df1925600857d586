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
#include "rendezvous/base/rng.h"
#include "rendezvous/core/membership.h"
#include "tests/sim/ghost.h"
#include "worker_runtime/core/worker_core.h"

namespace elastic::internal::sim {

struct Options {
  uint64_t seed = 1;
  bool verbose = false;
  int faults = -1;  // -1: as the seed says
};

struct Result {
  uint64_t trace = 0;  // hash of every event in order
  std::vector<std::string> violations;
  int exit_code = -1;
  std::string outcome;                // why it ended, or what it waits for
  std::map<std::string, int> counts;  // what the run covered
  uint64_t events = 0;
};

enum class Fault : uint8_t {
  kWorkerCrash,
  kWorkerStop,
  kAgentCrash,
  kAgentPause,
  kHostLost,
  kCutUp,
  kCutDown,
  kCutBoth,
  kServerRestart,
  kServerPause,
  kEdgeReset,
  kDialFails,  // for want of descriptors, for a while
  kNoAnswer,   // to those who dial, for a while
  kWorkerLeave,
  kCount,
};

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
  Page page;
  std::unique_ptr<WorkerCore> core;
  std::deque<std::function<void(Process&)>> backlog;
  Instant to_agent{}, to_worker{};  // both directions of its socket keep their order

  Program program = Program::kStarting;
  GenerationId call;
  bool call_over = false;
  Roster call_roster;
  uint64_t step = 0;  // newest step that the program's call has committed
  std::optional<worker_action::Open> offered;
  std::set<GenerationNumber> synced;

  std::set<GenerationNumber> connected, told_up;
  std::map<GenerationNumber, std::map<WorkerIncarnation, uint64_t>> edges;  // token of the link
  std::map<GenerationNumber, Links> links;
  Instant no_dial_until{}, no_answer_until{};
  // What each rank contributed to each world collective of a generation.
  std::map<GenerationNumber, std::map<uint32_t, std::map<WorkerIncarnation, Agreement>>> heard;
  std::map<GenerationNumber, uint32_t> begun;
  std::set<GenerationNumber> used;  // its edges: what breaks from then on is a loss
  GenerationId awaiting;
  Agreement contribution;

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
  bool paused = false, lost = false;
  std::deque<std::function<void()>> backlog;
  std::optional<ConnectionId> connection;
  AgentIncarnation incarnation;
  ServerIncarnation server_seen;
  bool registered = false;
  bool cut_up = false, cut_down = false;
  std::optional<Instant> kill_at, wake_at;
  GenerationNumber claimed_closed;  // in a report of this life
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
};

// One run: a server, agents and workers of several hosts with the real cores, a network and
// programs made of random numbers. Everything happens in virtual time, in one thread.
class Sim {
 public:
  explicit Sim(Options options);
  Result Run();

 private:
  // sim.cc: time, trace, randomness
  void At(Duration delay, std::function<void()> action);
  Duration Between(int64_t microseconds_min, int64_t microseconds_max);
  template <class... Parts>
  void Trace(const Parts&... parts) {
    TraceText(StrCat(parts...));
  }
  void TraceText(const std::string& text);
  void Count(const std::string& what) { ++result_.counts[what]; }
  void Violate(const std::string& text);
  bool RunUntil(Instant end);
  void Heal();
  void CheckEnd();
  bool Quiet() const;

  // sim_server.cc
  void StartServer();
  void StopServer();
  void ToServer(Duration delay, std::function<void()> action);
  void ServerStep(const Event& event);
  void Carry(const Action& action);
  void CheckPersisted(const JournalRecord& record);
  void ForgetUnheard(const JournalRecord& record);
  void CheckInstalled(const Roster& roster);
  void CheckFinished(const FinishRecord& record);
  bool StateReachable() const;
  void SendDirective(const std::string& host);
  void ScheduleServerWake();
  int HostIndex(const std::string& name) const;

  // sim_agent.cc
  void StartAgent(int host);
  void EndAgentProcess(int host, bool silent);
  void Dial(int host, int life);
  void ToAgent(int host, int life, Duration delay, std::function<void()> action);
  void AgentStep(int host, const AgentEvent& event);
  void Carry(int host, const AgentAction& action, std::deque<AgentAction>& queue);
  void CarryToWord(int host, const AgentAction& action, std::deque<AgentAction>& queue);
  void SendReport(int host);
  void ReadPages(int host);
  void ScheduleAgentWake(int host);
  void StampDeadline(int host, Instant kill_at);
  PageReading Read(const Process& process) const;
  void Bell(Process& process);

  // sim_worker.cc
  Process* Find(WorkerIncarnation name);  // any that it was given
  WorkerIncarnation ProcessOf(WorkerIncarnation name) const;
  const RosterEntry* EntryOf(const Roster& roster, WorkerIncarnation process) const;
  void Rename(Process& process, WorkerIncarnation name);
  void Spawn(int host, const agent_action::Spawn& spawn);
  void Die(Process& process, ExitStatus status, bool silent = false);
  void Leave(Process& process);
  void EndRuntime(Process& process, bool silent);
  void ToProcess(WorkerIncarnation id, Duration delay, std::function<void(Process&)> action);
  void Deliver(Process& process, std::function<void(Process&)> action);
  void DrainBacklog(Process& process);
  void FromWorker(Process& process, std::function<AgentEvent(const Process&)> make);
  void FrameToWorker(Process& process, std::function<void(Process&)> action);
  void Feed(Process& process, const WorkerEvent& event);
  void CarryAll(Process& process, std::deque<WorkerAction> queue);
  void Carry(Process& process, const WorkerAction& action);
  void CompareExchange(Process& process, const worker_action::Cas& cas);
  worker_event::WordSeen Look(const Process& process) const;

  // sim_program.cc
  void TakeOpen(Process& process, const worker_action::Open& open);
  void BackInRun(Process& process);
  void StartCall(Process& process);
  void Synced(Process& process);
  void Compute(Process& process);
  void WantCommit(Process& process);
  static bool Reduces(const Process& process);
  void CopyState(Process& process, StateVersion version);
  void CommitReturned(Process& process, bool committed);
  void CloseCall(Process& process, const GenerationId& generation);
  void RunReturned(Process& process, bool left);

  // sim_edges.cc
  void Connect(Process& process, const Roster& roster);
  void DialEdges(Process& process, const Roster& roster);
  void LinkEdge(Process& caller, Process& called, const GenerationId& generation);
  void TellUp(Process& process, const Roster& roster);
  void BreakEdge(Process& process, WorkerIncarnation peer, GenerationNumber number, uint64_t link);
  void FailEdge(Process& process, const GenerationId& generation,
                std::optional<WorkerIncarnation> peer);
  void RetryEdges(Process& process, const worker_action::RetryEdges& retry);
  void EndEdges(const Process& process, GenerationNumber up_to);
  // What that process is called in a generation that has it.
  WorkerIncarnation NameIn(GenerationNumber number, WorkerIncarnation process) const;

  // sim_data.cc
  void Disconnect(Process& process, GenerationNumber up_to);
  void BeginCollective(Process& process, const GenerationId& generation);
  void CheckAgreement(Process& process);
  void Fetch(Process& process, const worker_action::Fetch& fetch);
  void AskCopy(const RosterEntry& entry, const Request& request, const Roster& roster);
  void Answer(Process& holder, const Request& request);
  void AnswerRequests(Process& holder);
  void FailFetch(WorkerIncarnation asker, uint64_t token, Duration delay);
  void OfferTo(const Request& request, const Held& held);
  void Transfer(Process& process);
  void TakeState(Process& process, const Held& state);

  // sim_faults.cc
  void MaybeFault();
  void Inject(Fault fault);
  void StopWorker(Process& process);
  void ResetEdges(Process& process);
  void PauseAgent(int host, Duration length);
  void CutLink(Fault fault, int host, Duration length);
  Process* PickProcess();
  std::optional<int> PickHost();

  const Options options_;
  Rng rng_;
  Instant now_{};
  Result result_;
  Ghost ghost_;
  std::map<std::pair<Instant, uint64_t>, std::function<void()>> queue_;
  uint64_t sequence_ = 0;

  JobSpec spec_;
  uint64_t steps_ = 0;  // that the program trains
  Duration grace_{};
  int drop_percent_ = 0, duplicate_percent_ = 0;
  int faults_left_ = 0;
  uint64_t fault_odds_ = 100;
  bool healing_ = false;
  bool only_workers_lost_ = true;

  ServerIncarnation incarnations_;
  std::optional<JournalRecord> journal_;
  bool journal_in_memory_ = false;  // and lost with the server
  // Agents (host, life) that were sent a generation.
  std::map<GenerationNumber, std::set<std::pair<int, int>>> told_;
  Server server_;
  uint64_t connections_ = 0;
  std::vector<Host> hosts_;
  std::map<WorkerIncarnation, Process> processes_;
  std::map<WorkerIncarnation, WorkerIncarnation> renamed_;  // name that it was offered again as
  uint64_t tokens_ = 0;
  bool job_ended_ = false;
  bool recorded_ = false;
  bool state_reachable_ = false;  // somebody held the state when the job was given up
  GenerationId newest_installed_;
};

Result RunOnce(const Options& options);

}  // namespace elastic::internal::sim
