#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/generation_store.h"
#include "rendezvous/core/membership.h"
#include "rendezvous/core/ranks.h"
#include "rendezvous/core/resume.h"

namespace elastic::internal {

// Newest resets that status shows.
inline constexpr size_t kResetsKept = 32;
// After the first crash before any generation: how long equal crashes of the others are gathered.
inline constexpr Duration kFirstCrashWindow = std::chrono::seconds(2);
// After a crash was told: how long equal ones are gathered before they are.
inline constexpr Duration kCrashesGathered = std::chrono::seconds(1);
// Beyond the agents' own grace period, before a stopping job is given up.
inline constexpr Duration kStopSlack = std::chrono::seconds(5);
// A broken connection is seen by the far end before the dead worker's own agent sees the death. So
// long is an accusation given to be explained by one, before all are believed to live.
inline constexpr Duration kAccusationSettle = std::chrono::milliseconds(50);
// Installs with equal membership after a broken link before the accused is removed (P18).
inline constexpr int kBrokenLinkTries = 2;

// How a job that ends for want of its state goes on.
inline constexpr std::string_view kZeroHint = "; --allow-restart-from-zero would begin anew";

// One incarnation of a worker, as its agent reported it last.
struct Worker {
  int host = 0;  // index into State::hosts
  WorkerReport report;
  int32_t rank = -1;          // in the newest generation that it was a member of
  bool reported = false;      // false: known only from a restored roster
  uint64_t seen_in = 0;       // sequence of the newest report that named it
  bool copy_dropped = false;  // its agent has forgotten it; nothing can be read there any more
  bool death_noted = false;
  bool exit_counted = false;
  bool stray = false;  // named a number that was never issued: its word is not believed
  // Why its agent was told to kill it, as it goes on after the worker's name.
  std::string given_up;

  bool dead() const { return reported && report.life == WorkerLife::kDead; }
  // The word cannot change any more (P5); of a dead worker it never does.
  bool final_word() const { return dead() || (reported && report.word.final_after_fence()); }
  // The word has the number only; the identity beside it tells another line's generation of that
  // number apart (P2). It may be of another number when the page was read between both writes.
  bool in_generation(const GenerationId& id) const {
    const bool other_line = report.generation.number == id.number && report.generation != id;
    return reported && report.word.generation == id.number && !other_line;
  }
};

// A directive without its rosters and numbers: cheap to make and to compare.
struct Orders {
  Directive directive;
  GenerationId installed, prepared;
};
bool SameOrders(const Orders& a, const Orders& b);

struct Host {
  HostSpec spec;
  std::optional<std::string> start_failure;
  AgentIncarnation agent;  // present life; 0: none has registered
  std::optional<ConnectionId> connection;
  std::optional<Instant> stream_ended;
  bool reported = false;  // the present incarnation has sent a report
  bool outlived = false;  // the present incarnation was issued by this server's predecessor
  bool replaces = false;  // an agent before it is not here to speak for itself
  std::optional<AgentReport> unread;  // newest one, while this server relearns
  bool heard_here = false;            // the present incarnation has reported to this server before
  bool counted = false;
  AgentReport last;  // newest report of the present incarnation, without its workers

  // The other direction of the link (P20): a directive given out and not acknowledged since
  // `ack_reference` shows a one-way cut.
  uint64_t directive_sequence = 0;
  Instant ack_reference{};
  // What the agent was last told to do, to see whether it changed, and when it was told.
  std::optional<Orders> told;
  Instant told_at{};
  uint64_t final_sequence = 0;  // first directive that said stop or finished
  // Of the newest report: answers to what its workers put, and what they wait for.
  std::vector<StoreAnswer> put_answers;
  std::vector<StoreKey> wanted;
};

// Each life of a server has a block of agent numbers of its own, so that one that knows nothing
// issues none that an agent may have which has not spoken yet (P1).
inline constexpr uint32_t kAgentsPerServer = 1u << 16;
inline uint32_t FirstAgentOf(ServerIncarnation server) {
  constexpr uint64_t kBlocks = std::numeric_limits<uint32_t>::max() / kAgentsPerServer;
  return static_cast<uint32_t>(std::min(server.value - 1, kBlocks) * kAgentsPerServer);
}

inline std::string Members(int count) { return StrCat(count, count == 1 ? " member" : " members"); }

// Why no successor is installed yet, or what it will be made of.
struct Plan {
  Wait wait;
  std::vector<const Worker*> keep, add;
  Held resume;
  std::vector<const Worker*> copies;  // dead holders whose agents serve the resume version
  bool state_lost = false;            // no holder can ever come back (P19)
};

struct Cause {
  WorkerIncarnation worker;  // invalid: no worker's
  std::string who;           // its name; empty: `text` has all
  std::string text;
  bool crash = false;  // its own end; `text` fits several ranks
  bool open = false;   // its exit status will still complete the text
};
struct Reset {
  ResetView view;  // its cause is made of these
  std::vector<Cause> causes;
  Instant installed{};
};

// What a server without a record has gathered while it lets the agents speak first.
struct Relearning {
  std::set<int> spoke;                     // hosts that have told all that happened there
  std::map<GenerationId, Roster> rosters;  // by the server that made them, then number
  std::set<GenerationId> applied;          // installed, as an agent says
  std::optional<FinishRecord> finished;
  Memory stop;  // its stop only
};

// Equal ends of workers, as in `rank 1 (a:1) died: exit code 7`.
struct Crashes {
  std::string how;
  std::vector<std::string> who;  // not told yet
  Instant due{};                 // when they are
};

// How the job ends, once that is decided.
struct Ending {
  int exit_code = 0;
  std::string reason;
  StopMode mode = StopMode::kNone;
  std::optional<Instant> give_up;
  std::string before_cause;  // set: the reason is this and the newest reset's cause
};

struct Membership::State {
  State(JobSpec job, ServerIncarnation own, std::optional<JournalRecord> restored, Instant start);

  // ---- one file per event --------------------------------------------------------------------
  void OnConnected(const AgentConnected& event);        // membership_connect.cc
  void OnDisconnected(const AgentDisconnected& event);  // membership_connect.cc
  void OnStartFailed(const AgentStartFailed& event);    // membership_connect.cc
  void OnReported(const AgentReported& event);          // membership_report.cc
  void OnStopRequested(const StopRequested& event);     // membership_end.cc

  // ---- what follows from the state, in this order after every event (membership.cc) ----------
  void Evaluate();
  void UpdateCounted();       // membership_tick.cc
  void EndRelearning();       // membership_relearn.cc
  void MarkLosses();          // membership_loss.cc
  void DismissDrained();      // membership_loss.cc
  void RemoveLateEntrants();  // membership_loss.cc
  void CloseIfBroken();       // membership_loss.cc
  void RecordIfFinished();    // membership_finish.cc
  bool EndIfProgramErred();
  bool FirstRoundIsOver() const;
  void FormFirst();        // membership_first.cc
  void FormSuccessor();    // membership_form.cc
  void NoteEntered();      // membership_form.cc
  void Prepare();          // membership_prepare.cc
  void CheckFirstRound();  // membership_first.cc
  void GiveUpWaiting();    // membership_end.cc
  void TellWait();         // membership_wait.cc
  void EndWithoutLauncher();
  void EndWhenGone();      // membership_end.cc
  void ForgetOldStores();  // membership_store.cc
  void PublishChanges();   // directive.cc

  // ---- questions -----------------------------------------------------------------------------
  Host* FindHost(const std::string& name);
  std::optional<Status> Refusal(const AgentConnected& event,
                                const Host* host) const;  // membership_connect.cc
  Host* HostOf(ConnectionId connection);
  Worker* Find(WorkerIncarnation id);
  const Worker* Find(WorkerIncarnation id) const;
  // Its agent's present reports speak for it.
  bool Reachable(const Worker& worker) const;
  bool Lost(const Worker& worker) const;  // P11: nothing of it can run in a closed generation
  Instant LastHeard(AgentIncarnation agent) const;
  // When nothing of that agent can live any more if it stays silent (P11, P20, P23).
  Instant OrphansEnd(AgentIncarnation agent) const;
  bool Marked(WorkerIncarnation id) const { return marked.contains(id); }
  bool Named(const Worker& worker) const;
  bool Returned(const Worker& worker) const;  // directive.cc
  bool Broken() const;
  bool SourceVanished() const;
  bool AllEntered() const;
  bool MemberEntered(const Worker& worker) const;
  bool WaitsForSource(const Worker& worker, const StateVersion& resume) const;
  bool HostGivenUp(const Host& host, int members_counted) const;
  void NoteLink(int members_counted);
  bool AccusedHost(const Host& host) const;
  bool Silent(const Host& host) const;
  Instant GiveUpAt() const;        // membership_end.cc
  Instant PatienceEnds() const;    // membership_end.cc
  bool MayReturn(int host) const;  // membership_end.cc
  std::string WhyLost(const Host& host) const;
  std::string Silence(const Host& host) const;
  bool Waiting(const Worker& worker) const;       // may be put into a generation
  std::vector<const Worker*> AllWaiting() const;  // by host, then slot
  std::vector<const Worker*> Newcomers() const;   // of these, who is in no installed roster
  int MembersCounted() const;
  bool SpawnAllowed() const;
  bool SlotFree(int host, const std::vector<int32_t>& slots) const;
  std::vector<std::vector<int32_t>> WantedSlots() const;  // per host
  bool EndedFirstRound(int host, int32_t slot) const;
  bool Forgettable(const Worker& worker) const;
  bool CopyNeeded(const Worker& worker) const;
  bool StableBeyond(const StateVersion& version) const;
  std::string DeathText(const Worker& worker) const;
  std::string NameOf(const Worker& worker) const;         // `rank 2 (127.0.0.2:0, pid 17)`
  GenerationNumber HighestKnown(const Host& host) const;  // membership_numbers.cc
  bool NumberLeft() const;
  bool AgentNumberLeft() const;
  Candidate CandidateOf(const Worker& worker, int32_t previous_rank) const;  // membership_first.cc
  Plan Examine() const;                                                      // membership_form.cc
  bool ExamineMembers(Plan& plan) const;
  bool FenceAnswered(Plan& plan) const;
  bool PreparedAccounted(Plan& plan) const;
  bool AllLost(const std::vector<Worker*>& group) const;
  void ChooseState(Plan& plan) const;
  void TakeReturnedHolders(Plan& plan) const;
  bool StateLost() const;
  bool Holds(const Worker& worker, const StateVersion& version) const;
  int OrderOf(const std::string& host) const;
  std::vector<Worker*> Index(const Roster& roster);
  Instant RelearnLimit() const;  // membership_relearn.cc
  Wait WaitForMemory() const;
  Wait CurrentWait() const;  // membership_wait.cc
  JobState CurrentJobState() const;
  Held NewestHeld() const;
  void HostDeadlines(const std::function<void(Instant)>& at) const;
  std::optional<Instant> NextDeadline() const;                          // membership_tick.cc
  Orders OrdersFor(int host, const std::vector<int32_t>& slots) const;  // directive.cc
  bool StoreOpen(const GenerationId& generation) const;                 // membership_store.cc
  void FillStore(const Host& host, Directive& directive) const;         // membership_store.cc
  std::string Announcement(const Roster& roster, const std::string& from) const;
  JobView View() const;

  // ---- changes -------------------------------------------------------------------------------
  void Emit(Action action) { actions.push_back(std::move(action)); }
  void Say(Severity severity, std::string text) { Emit(Note{severity, std::move(text)}); }
  void PersistNow();
  void MarkLost(Worker& worker, const std::string& cause, bool exit_follows = false);
  Reset* OpenReset();  // membership_resets.cc; null: the newest one is over
  void AddReset(Reset reset);
  void AddCause(Cause cause);
  void AddCauseUnlessKnown();
  void CompleteCause(const Worker& worker);
  void NoteCrash(const Worker& worker, std::string how);  // membership_crashes.cc
  void TellCrashes(bool all);
  void NoteAnswers(WaitReason waits_for);
  void CloseReset(const Roster& roster);
  void InstallSuccessor(const Plan& plan);
  bool BeginsAnew(const Plan& plan) const;  // membership_anew.cc
  void BeginAnew();
  bool RemoveBrokenLink();
  std::string FarEnds(WorkerIncarnation id) const;
  bool LossKnown() const;
  bool AccusationsSettled(Plan& plan) const;
  bool NoProgress(const Plan& plan);
  bool SameIncident() const;
  static bool SameWorkers(const Roster& roster, const std::vector<Candidate>& candidates);
  void Learn(Host& host, const AgentReport& report);  // membership_relearn.cc
  void Adopt(const JournalRecord& record);
  void ApplyReport(Host& host, const AgentReport& report);
  void ApplyWorker(const WorkerReport& report, int host);
  void LearnNumbers(const AgentReport& report,
                    GenerationNumber highest);  // membership_numbers.cc
  bool RefuseStray(Host& host, const AgentReport& report, GenerationNumber highest);
  WorkerReport Believed(const WorkerReport& report, Worker& worker);
  void StrayNumber(Worker& worker, const WorkerReport& report, GenerationNumber named);
  GenerationNumber IssueNumber();
  void EndWithoutNumbers(std::string_view what);
  void ForgetPast();
  void TakeStore(Host& host, const AgentReport& report);  // membership_store.cc
  void PublishValue(const StoreKey& key);
  void CollectAccusations(const AgentReport& report);
  void LearnBoundaries(const AgentReport& report);
  void NoteDeath(Worker& worker);
  void CountExit(Worker& worker);
  void Install(Roster roster);
  void InstallLearned(size_t prepared_index, const Worker& witness);
  void GiveUpPrepared(const std::string& why);
  void LearnResume(const Worker& witness);
  void ForgetAbsent(Host& host, int index);
  void End(int exit_code, std::string reason, StopMode mode);
  void IndexMembers();

  // ---- constant ------------------------------------------------------------------------------
  const JobSpec spec;
  const ServerIncarnation incarnation;
  const Instant started;

  // ---- state ---------------------------------------------------------------------------------
  Instant now;                // may be that of a question between two steps
  Instant stepped;            // of the newest step
  Instant judges_from;        // silence before counts for nothing: this server slept itself
  bool link_doubted = false;  // too few members were heard, for silence (P20)
  Instant link_trusted_from;  // silence before raises no marks: that link has come back just now
  Actions actions;            // of the step in progress
  std::vector<Host> hosts;
  std::map<WorkerIncarnation, Worker> workers;
  std::map<AgentIncarnation, Instant> heard;  // last contact with each life of an agent
  AgentIncarnation agents_issued;
  GenerationNumber numbers_issued;

  std::optional<Roster> installed;
  std::optional<Roster> parent;  // only while `installed` is a prepared one (P26)
  std::vector<Roster> prepared;  // every successor of `installed` ever sent; newest last
  std::vector<Worker*> members, parent_members;
  Lineage lineage;
  Held learned_resume;  // of a prepared generation, once a word has shown it
  GenerationNumber closed;
  std::set<WorkerIncarnation> marked;   // lost: dead, or on a lost host, or removed
  std::set<WorkerIncarnation> removed;  // marked, perhaps alive, to be killed
  // (reporter, accused) of connections that broke in the unmarked installed generation (P18).
  std::set<std::pair<WorkerIncarnation, WorkerIncarnation>> accusations;
  std::map<GenerationId, GenerationStore> stores;
  std::optional<FinishRecord> finished;
  Instant recorded_at{};
  bool finish_seen = false;  // a member has reported: nobody is replaced from now on (P29)

  Instant installed_at{};
  bool all_entered = false;
  std::optional<Instant> broken_since;  // no generation that can go on since then
  std::optional<Instant> anew_since;    // the state was given up (--allow-restart-from-zero)
  std::optional<Instant> answered;      // the broken one's last word has come
  Wait waiting;                         // as of the newest step
  std::optional<Wait> wait_told;        // newest one that was told since the job last went on
  Instant wait_due{};                   // when `waiting` may be told
  int broken_links = 0;                 // resets in a row by accusations of living workers
  Instant last_broken_link{};
  int failures_without_progress = 0;
  StateVersion progress;                      // newest version known at the last failure
  std::set<WorkerIncarnation> made_progress;  // members of the generation that committed it
  std::optional<Relearning> relearning;       // restarted without a record: P1's wait
  bool relearnt_in_part = false;              // an end of the job did not wait for all to speak
  bool from_record = false;  // what is installed is known by name, its members not yet by a report

  std::map<std::pair<int, int32_t>, int> first_deaths;  // before any generation, by slot
  std::optional<Instant> first_crash;

  std::vector<Crashes> crashes;
  std::deque<Reset> resets;
  int resets_total = 0;
  std::optional<Instant> launcher_gone;
  std::optional<Ending> ending;
  Held newest_at_end;  // members are forgotten while a job ends, what they had is still asked for
  bool ended = false;
  bool publish_all = false;
  std::set<int> publish_hosts;
};

}  // namespace elastic::internal
