#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// One host that the job wants. A host exists when its agent registers (P4).
struct HostSpec {
  std::string name;  // as the user wrote it; for loopback hosts also the data address
  int32_t slots = 1;
  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

// What the user asked for.
struct JobSpec {
  std::string job_id;
  int np = 1;      // workers that the job begins with
  int min_np = 1;  // fewest that may train
  int max_np = 1;  // most that may train; the job grows up to it where slots are free
  std::vector<HostSpec> hosts;
  Duration heartbeat_timeout = kHeartbeatTimeoutDefault;
  // How long the first generation waits for np workers, before it begins with min_np or more.
  Duration start_timeout = kStartTimeoutDefault;
  Duration elastic_timeout = kElasticTimeoutDefault;
  Duration entry_timeout = kEntryTimeoutDefault;
  Duration orphan_limit = kOrphanLimitInProcess;
  Duration grace_period = kGracePeriodDefault;  // the agents' own; the server waits a little longer
  // Generations in a row that may fail without a newly committed step; 0: any number.
  int no_progress_limit = kNoProgressLimitDefault;
  // P19: when no holder of the committed state can come back, begin anew instead of ending.
  bool allow_restart_from_zero = false;
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// What every job must be, whichever program it was given to. Values are named by the flags that
// elastic-run and elastic-rendezvous share. The order of the host list is ParseHostList's business.
// Errors: INVALID_ARGUMENT, FAILED_PRECONDITION or RESOURCE_EXHAUSTED with one line that names the
// value and the remedy.
Status CheckJob(const JobSpec& job);

// Exit codes of elastic-run and elastic-rendezvous.
enum class JobExit : int {
  kFinished = 0,
  kWorkerFailure = 1,  // a worker failed for good, or a crash loop
  kUsage = 2,
  kTooFewWorkers = 3,  // below min-np at --start-timeout, or for longer than --elastic-timeout
  kStateLost = 5,      // no holder of the committed state, or the server, is left
};

// 128 + signal number, as shells report it; no JobExit is as large.
inline constexpr int kExitBySignal = 128;

enum class JobState : uint8_t {
  kStarting = 0,   // no generation yet
  kRunning = 1,    // installed, all entered
  kEntering = 2,   // installed, not all entered
  kReforming = 3,  // a member is lost, successor not installed yet
  kFinishing = 4,  // a member reported finished
  kFinished = 5,
  kFailed = 6,
};

// Why the job does not go on, with the numbers behind it (style rule 12).
enum class WaitReason : uint8_t {
  kNone = 0,
  kAgents,                // wanted hosts have not registered
  kWorkersReady,          // wanted workers have not declared readiness
  kMinNp,                 // fewer than min-np workers are left
  kFenceAnswers,          // counted hosts have not answered the fence
  kCommitting,            // a live worker is still committing
  kPreparedMayBeEntered,  // P10: nobody of a prepared successor is accounted for
  kAllMembersSilent,      // P11: orphan limit plus kill allowance
  kResumeVersion,         // no holder of the resume version is reachable (P19)
  kEntry,                 // members that have not entered
  kFinishReports,         // members that have not reported finished
  kMemory,                // hosts that a server without a record has not heard yet (P1)
};
struct Wait {
  WaitReason reason = WaitReason::kNone;
  int have = 0;
  int want = 0;
  std::vector<std::string> who;  // hosts or `rank R (host:slot)` waited for
  std::optional<Instant> until;  // when the job gives up or decides, if it does
  bool first = false;            // for the first generation: --start-timeout says until when
};
// `a:0, a:1, a:2`, the first few of many.
std::string SomeNames(const std::vector<std::string>& who);
// `missing: b:0, b:1`, the first few of many; empty when nobody is waited for.
std::string Missing(const Wait& wait);
// One line: what is wanted, what was found, until when, which flag changes it.
std::string Describe(const Wait& wait, Instant now);

// One change of membership, for status and logs; the newest kResetsKept are kept.
struct ResetView {
  GenerationNumber from, to;
  std::string cause;  // `rank 2 (127.0.0.2:0) died: signal 9 (SIGKILL)`
  int size_before = 0, size_after = 0;
  Held resumed;
  // Seen from the server: report of the loss -> last answer -> installed -> all entered.
  Duration answers{0}, form{0}, enter{0};
  bool complete = false;
};

struct WorkerView {
  int32_t rank = -1;  // -1: not a member of the installed generation
  std::string host;
  WorkerReport report;
};
struct HostView {
  std::string name;
  bool registered = false, counted = false;
  AgentIncarnation agent;
  int32_t slots = 0;
  Duration heartbeat_age{0};
};
// A picture of the job for the status service.
struct JobView {
  std::string job_id;
  JobState state = JobState::kStarting;
  Wait wait;
  std::string wait_text;
  GenerationId generation;
  int size = 0, np = 0, min_np = 0, max_np = 0;
  Held newest;  // newest version held by a member
  std::vector<HostView> hosts;
  std::vector<WorkerView> workers;  // members in rank order, then others
  std::vector<ResetView> resets;    // newest last
  int resets_total = 0;
};

}  // namespace elastic::internal
