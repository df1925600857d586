#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/types.h"
#include "rendezvous/base/roster.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/time.h"
#include "worker_runtime/state_items.h"

namespace elastic::internal {

// What a member is told about its generation.
struct Membership {
  GenerationNumber generation;
  Placement place;
};

// One member of the present generation.
struct MemberView {
  int32_t rank = 0;
  int32_t previous_rank = -1;
  int32_t slot = 0;
  std::string host;
  Endpoint data;
  std::string incarnation;
};

// Where this process stands in the job (elastic_standing).
enum class Standing : uint8_t { kStarting, kWaiting, kMember, kFinished };

// What the program's own loop should do next (elastic_event).
enum class LoopEvent : uint8_t { kContinue, kReformed, kRestore, kCommitWanted, kStopAt };

// Newest recovery of this worker (control_page.h), CLOCK_BOOTTIME nanoseconds, 0: not yet.
struct RecoveryTimes {
  int64_t fenced = 0;
  int64_t bell_heard = 0;
  int64_t roster_came = 0;
  int64_t edges_up = 0;
  int64_t restored = 0;
};

// This process's part in a job, behind the C interface. Two kinds: AgentSession (link/) in a job,
// SoloSession as a world of one. All calls from the program's thread, one at a time.
//
// ABORTED means that the generation is over: Join enters the next one.
class Session {
 public:
  using Deadline = std::optional<Instant>;

  virtual ~Session() = default;

  virtual std::string incarnation() const = 0;

  // Once, before Join. Errors: those of StateMemory; FAILED_PRECONDITION.
  virtual Status CreateState(size_t bytes) = 0;
  virtual void* current() const = 0;  // null without state
  virtual void* next() const = 0;
  virtual uint64_t committed_step() const = 0;
  // State in the program's own memory instead; the first item before Join. Errors: those of
  // StateItems and StateMemory; FAILED_PRECONDITION.
  virtual Status RegisterItem(StateItem item) = 0;
  virtual StateItems* items() = 0;  // null without RegisterItem

  // Declares readiness at the first call; returns once this process is a member with the state to
  // go on from, or done() is true.
  virtual Status Join(Deadline deadline) = 0;
  // Of the newest generation that was joined; none before.
  virtual std::optional<Membership> membership() const = 0;
  virtual Status Commit(uint64_t step, Deadline deadline) = 0;
  // The program is at its end with the committed state; OK once the job is finished (P29).
  virtual Status Finish(Deadline deadline) = 0;
  // Asks all ranks to stop; they see it at once, when a commit has returned. Any thread.
  virtual void RequestStop() = 0;
  virtual bool stop_requested() const = 0;
  // The job is finished, or this process was told to leave: nothing is left to do but to exit 0.
  virtual bool done() const = 0;

  // On which connections of the generation a collective runs, and for how long at most.
  struct Call {
    Deadline deadline;
    int communicator = 0;  // 0: those that the generation was entered with; else from below
  };
  // One more set of connections of this generation, by all ranks in the same order. Operations on
  // different ones may run at one time, in different threads.
  virtual StatusOr<int> CreateCommunicator(Deadline deadline) = 0;
  virtual Status AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                           const Call& call) = 0;
  virtual Status ReduceScatter(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                               const Call& call) = 0;
  virtual Status Broadcast(void* data, size_t bytes, int root, const Call& call) = 0;
  // Rank r's part has bytes_of[r] bytes; one number for each rank.
  virtual Status AllGather(const void* in, void* out, std::span<const size_t> bytes_of,
                           const Call& call) = 0;
  virtual Status Barrier(const Call& call) = 0;

  // ---- the program's own loop
  virtual Standing standing() const = 0;
  // Of the newest generation that was joined, in rank order; none before.
  virtual std::vector<MemberView> members() const = 0;
  // Never blocks; kReformed is told once. Only once a generation was joined. Errors: what every
  // later call will answer.
  virtual StatusOr<LoopEvent> Poll() = 0;
  // Readable while Poll would say something that it has not said yet, kRestore or an error; also as
  // long as no generation was joined.
  virtual StatusOr<int> EventFd() = 0;
  virtual Status Put(const std::string& key, std::string value, Deadline deadline) = 0;
  virtual StatusOr<std::string> Get(const std::string& key, Deadline deadline) = 0;

  virtual RecoveryTimes recovery_times() const = 0;
};

}  // namespace elastic::internal
