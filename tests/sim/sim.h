#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/base/rng.h"
#include "tests/sim/faults.h"
#include "tests/sim/ghost.h"
#include "tests/sim/parties.h"

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
  uint64_t events = 0;                // delivered to a core
  Coverage coverage{};
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
  void CheckGoesOn();
  void CheckEnd();
  bool Quiet() const;

  // sim_server.cc
  void StartServer();
  void StopServer();
  void ToServer(Duration delay, std::function<void()> action, bool message = true);
  void ServerStep(const Event& event);
  void Carry(const Action& action);
  void CheckPersisted(const JournalRecord& record);
  bool Spent(const Host& host) const;
  void ForgetUnheard(const JournalRecord& record);
  void CheckNumberIsFree(GenerationNumber number);
  void CheckReady(const Roster& roster);
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
  Duration GuardianLag(int host);
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
  bool Apart(const Process& a, const Process& b);
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
  void OfferTo(const Request& request, const Held& held, Duration network);
  void Transfer(Process& process);
  void TakeState(Process& process, const Held& state);

  // sim_aim.cc
  void MaybeFault();
  bool MaybeTargeted();
  bool LeadUp(const Target& target);
  void HideEntry(const GenerationId& generation);
  bool BeginDrain();
  Process* PickProcess(bool awaited);
  std::optional<int> PickHost(bool awaited);

  // sim_faults.cc
  struct Victim {
    Process* process = nullptr;
    std::optional<int> host;
  };
  bool Inject(Fault fault, const Victim& victim);
  void InjectAtWorker(Injected by, Process& process, Duration length);
  void InjectAtHost(Injected by, int host, Duration length);
  void InjectAtServer(Injected by, Duration length);
  void StopWorker(Process& process, Injected by);
  void ResetEdges(Process& process, Injected by);
  void PauseAgent(int host, Duration length, Injected by);
  void WakeAgent(int host);
  void Suspend(int host, Duration length, Injected by);
  void StopGuardian(int host, Duration length, Injected by);
  void Cut(int host, Duration length, Injected by);
  void WakeServer();
  void RestartServer(Duration after);

  // sim_coverage.cc
  void NoteAwaited(const JobView& view);
  Stage StageNow(bool ignore_pause = false) const;
  bool Awaits(const Process& process) const;
  bool Awaits(int host) const;
  void Hit(Injected by, bool awaited);
  bool Broken(const Until& until) const { return now_ < until.end; }
  bool Broken(const Until& until, int host);
  Duration Network(int from, int to, Duration delay, bool awaited);

  const Options options_;
  Rng rng_;
  Instant now_{};
  Result result_;
  Ghost ghost_;
  std::map<std::pair<Instant, uint64_t>, std::function<void()>> queue_;
  uint64_t sequence_ = 0, steps_taken_ = 0;

  JobSpec spec_;
  uint64_t steps_ = 0;  // that the program trains
  Duration grace_{};
  int drop_percent_ = 0, duplicate_percent_ = 0;
  int faults_left_ = 0;
  uint64_t fault_odds_ = 100;
  bool healing_ = false;
  bool only_workers_lost_ = true;
  std::vector<Target> targets_;
  bool drains_ = false;  // members will be drained once
  uint64_t injected_ = 0;
  std::set<std::pair<uint64_t, Stage>> counted_;
  Awaited awaited_;
  Instant committed_at_{};

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

// Runs jobs with seeds made of this one until this many events were delivered in all.
inline constexpr uint64_t kEventsMin = 2000;
Result RunOnce(const Options& options);

}  // namespace elastic::internal::sim
