#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace elastic::internal {

// Plays a golden script: commands in, what Membership did out. The script moves agents and workers
// by hand, so that every interleaving can be told; `follow` makes an agent do what a correct one
// does with its newest directive. README.md has the commands.
class Story {
 public:
  Story();
  ~Story();
  // The output of one command line, each line ended by a newline. A malformed command gives a line
  // that begins with `error:`.
  std::string Run(const std::string& line);

 private:
  struct Actor {  // a worker
    std::string host;
    WorkerReport report;
    bool forgotten = false;
  };
  struct Agent {
    ConnectionId connection;
    AgentIncarnation incarnation;
    uint64_t sequence = 0, acked = 0, told = 0;
    GenerationNumber closed;
    GenerationId installed, prepared;
    ServerIncarnation server;
    std::map<GenerationNumber, Roster> rosters;  // all that it was told
    std::optional<FinishRecord> finished;
    bool replaces = false, told_all = false;
    std::vector<Mark> marks;
    bool serves_copies = true;
    uint32_t counter = 0;
    Directive shown;  // what the script has been shown, to print differences only
    std::optional<std::string> spawn_error;
    std::vector<StorePut> puts;
    std::vector<StoreKey> wanted;
  };

  using Words = std::vector<std::string>;
  void Dispatch(const Words& words);
  bool DispatchAgents(const Words& words);
  bool DispatchWorkers(const Words& words);
  void Job(const Words& words);
  void Connect(const std::string& host, bool again, int32_t slots = kSlotsPerHostMax);
  void Reconnect(const Words& words);
  void Spawn(const std::string& name, const std::string& place);
  void Change(Actor& actor, const Words& words);
  void Die(Actor& actor, const std::string& how);
  void UseStore(Actor& actor, const std::string& verb, const std::string& text);
  static void TakeStore(Agent& agent, const Directive& directive);
  static void ShowStore(const Directive& now_told, const Directive& before, std::ostream& line);
  void Commit(const Words& words);
  void Enter(const Words& words);
  void Cross(const Words& words);
  void Report(const std::string& host);
  void Follow(const std::string& host);
  static Memory MemoryOf(const Agent& agent);
  void Obey(Agent& agent, const std::string& host, const Directive& directive);
  void OfferAgain(Agent& agent, const std::string& name);
  void MoveTo(Actor& actor, const Roster& roster, GenerationNumber closed);
  void Pass(Duration duration);
  void Beats(const Words& words);
  void Restart(const Words& words);
  void Start(const Words& words);
  void Status();
  void Resets(bool durations);
  void Feed(const Event& event);
  void Show(const Action& action);
  void ShowRoster(const char* title, const Roster& roster);
  void ShowOrders(const std::string& host);
  std::string Name(WorkerIncarnation incarnation) const;
  std::string Names(const std::vector<WorkerIncarnation>& list) const;
  std::vector<Actor*> Chosen(const Words& words, size_t from);

  std::unique_ptr<Membership> membership_;
  std::optional<JournalRecord> record_;
  JobSpec spec_;
  Instant now_{};
  uint64_t server_ = 0;
  uint64_t connections_ = 0;
  std::map<std::string, Agent> agents_;
  std::map<std::string, Actor> actors_;
  std::map<WorkerIncarnation, std::string> names_;
  std::optional<Roster> installed_, prepared_;  // newest that were persisted
  std::ostringstream out_;
  bool quiet_ = false;
};

}  // namespace elastic::internal
