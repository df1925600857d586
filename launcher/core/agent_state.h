#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/core/agent_core.h"

namespace elastic::internal {

// One worker process of this host, from the request to spawn it until it may be forgotten.
struct AgentWorker {
  WorkerIncarnation incarnation;
  WorkerIncarnation process;  // what it was spawned as
  int32_t slot = 0;
  int64_t pid = 0;
  bool spawned = false;  // the guardian answered; before that there is no page
  bool ready = false;    // declared readiness: may be in a roster, can be sent frames
  PageReading reading;
  bool awaiting_page = false;  // a Fence or Reset is under way: the reading is stale
  Instant beat_at;
  bool suspended = false;  // traced or dumping core: said once

  // Lost: its generations are fenced and it may not live on. Ownerless: its runtime's thread is
  // gone, so it enters nothing and commits nothing any more, but for a commit that it was in. Dead:
  // its word cannot change any more, which is what a report of death means (P13). Reaped: the exit
  // status is known.
  bool lost = false, ownerless = false, dead = false, reaped = false;
  std::optional<Instant> kill_at;  // lost, and until then it may exit by itself
  DeathCause cause = DeathCause::kUnspecified;
  std::optional<ExitStatus> exit;
  uint64_t exit_told = 0;  // first report that had it; 0: none yet
  bool released = false;
  bool progressed = false;  // committed at least once
  // Its host was silent and the job went on without it: to be offered again, or it has been. Then
  // the entry is dead and its process belongs to a newer one.
  bool returning = false, offered_again = false;

  Endpoint data;
  GenerationId entered;
  GenerationId finished_in;
  Held finished;
  std::optional<std::string> program_error;
  std::vector<Accusation> accusations;
  std::set<GenerationNumber> delivered;
  GenerationNumber delivered_last;
  bool told_leave = false, told_finish = false;

  bool running() const { return !reaped; }
  // Its word can still change and its generation can still commit.
  bool open() const { return spawned && !dead; }
  const CommitWord& word() const { return reading.word; }
};

// A slot's restarts.
struct AgentSlot {
  int failures = 0;  // deaths in a row without a commit
  Instant spawn_at;
};

enum class Ending : uint8_t { kNo, kSuperseded, kOrphaned, kLauncherGone, kRefused };

// All of AgentCore's memory and its transitions; each agent_*.cc file has those of one subject.
struct AgentCore::State {
  State(AgentSettings own, Instant start) : settings(std::move(own)), now(start), acked_at(start) {}

  // One handler per event.
  void On(const agent_event::Registered& event);
  void On(const agent_event::StreamLost& event);
  void On(const agent_event::DirectiveCame& event);
  void On(const agent_event::Spawned& event);
  void On(const agent_event::SpawnFailed& event);
  void On(const agent_event::Ready& event);
  void On(const agent_event::Entered& event);
  void On(const agent_event::Accused& event);
  void On(const agent_event::Finished& event);
  void On(const agent_event::Leaving& event);
  void On(const agent_event::ProgramFailed& event);
  void On(const agent_event::PageRead& event);
  void On(const agent_event::OwnerDied& event);
  void On(const agent_event::Exited& event);
  void On(const agent_event::BeatMissed& event);
  void On(const agent_event::LauncherGone& event);
  void On(const agent_event::Refused& event);
  void On(const agent_event::CopiesServed& event);
  void On(const agent_event::PutCame& event);
  void On(const agent_event::GetCame& event);
  void On(const agent_event::TimePassed& event);

  template <class Action>
  void Emit(Action action) {
    actions.emplace_back(std::move(action));
  }
  void Say(Severity severity, std::string text) {
    Emit(agent_action::Say{severity, std::move(text)});
  }
  AgentWorker* Find(WorkerIncarnation incarnation);
  AgentWorker* Of(WorkerIncarnation process);  // the newest incarnation of it
  std::string NameOf(const AgentWorker& worker) const;

  // agent_fence.cc: whose word must change, and the answer to a fence.
  void Evaluate();
  void SpreadMarks();
  bool Closed(GenerationNumber generation) const;
  bool EvaluateWord(AgentWorker& worker);
  void RaiseClosed();
  bool Answered(const AgentWorker& worker) const;

  // agent_roster.cc: installing, resetting, delivering.
  void Follow(ServerIncarnation next);  // agent_directive.cc
  void TakeInstalled(const Roster& roster);
  void TakePrepared(const std::optional<Roster>& roster);
  void Install();
  void NoteCrossing(const AgentWorker& worker);
  bool ResetWord(AgentWorker& worker);
  void Deliver(AgentWorker& worker);
  void DeliverOne(AgentWorker& worker, const Roster& roster);
  void ForgetOldRosters();

  // agent_return.cc: live processes under new names.
  void OfferAgain();
  AgentWorker Renamed(AgentWorker& before);

  // agent_death.cc
  void Read(AgentWorker& worker, const PageReading& reading);
  void Lose(AgentWorker& worker, DeathCause cause, Duration time_to_exit = Duration{0});
  void ConfirmDeaths();
  bool SawGeneration(AgentWorker& worker, const GenerationId& generation);

  // agent_put_get.cc
  Status MayUseStore(const AgentWorker& worker, const StoreKey& key) const;
  void AnswerStore(AgentStore::Answers answers);
  void ForgetOldStores();

  // agent_spawn.cc
  void SpawnWanted();
  void DelaySlot(int32_t slot, bool progressed);

  // agent_stop.cc: stopping, orphan limit, ending.
  void Acknowledge(uint64_t report);
  void CheckDeadlines();
  void Stop(StopMode mode, const std::string& reason);
  void SignalAll(int signal);
  void KillAllAndEnd(Ending why, const std::string& reason);
  void EndIfEmpty();

  const AgentSettings settings;
  Instant now;
  AgentActions actions;                   // of the step under way
  std::vector<agent_action::Kill> kills;  // of this step: after the fences, before the report
  bool dirty = false;                     // the server must hear of a change at once
  bool report_asked = false;              // a Report action is out, MakeReport not called since

  AgentIncarnation agent;
  bool connected = false;
  ServerIncarnation server;
  uint64_t acked_directive = 0;
  uint64_t report_sequence = 0;
  uint64_t acked_report = 0;         // newest one that the present server has applied
  std::map<uint64_t, Instant> sent;  // reports made and not acknowledged
  Instant acked_at;                  // sending of the newest acknowledged one (P23)
  std::optional<Instant> next_beat;

  std::map<WorkerIncarnation, AgentWorker> workers;
  uint32_t counter = 0;
  std::map<int32_t, AgentSlot> slots;
  std::vector<int32_t> wanted;
  bool spawn_allowed = false;
  std::optional<std::string> spawn_error;

  std::map<GenerationNumber, Roster> rosters;
  GenerationNumber installed_target;  // newest installed roster that was told
  GenerationId installed;             // and applied
  GenerationId prepared;
  GenerationNumber closed_wanted;  // told by the server
  GenerationNumber closed;         // and true here
  std::set<Mark> marks;
  std::set<WorkerIncarnation> lost;  // local ones, also those forgotten
  std::optional<FinishRecord> finished;
  Endpoint copies;
  AgentStore store;

  StopMode stop = StopMode::kNone;
  bool told_all = false;    // by a server that knew the job's past
  std::string stop_reason;  // as the server told it
  int32_t stop_exit_code = 0;
  std::optional<Instant> kill_at;  // end of the grace period
  uint64_t empty_report = 0;       // first report made with no process left
  bool empty_acked = false;
  Ending ending = Ending::kNo;
  bool ended = false;
};

}  // namespace elastic::internal
