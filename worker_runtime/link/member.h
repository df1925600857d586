#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/transport/context.h"
#include "collectives/transport/mesh.h"
#include "proto/local/store_codec.h"
#include "rendezvous/base/mutex.h"
#include "worker_runtime/core/worker_core.h"
#include "worker_runtime/link/agent_socket.h"
#include "worker_runtime/link/loop_bell.h"
#include "worker_runtime/link/worker_page.h"
#include "worker_runtime/session.h"
#include "worker_runtime/state_items.h"
#include "worker_runtime/state_memory.h"

namespace elastic::internal {

// This worker as a member: the pure core, and what both threads need to carry out its decisions
// under one lock. The runtime's thread (R, runtime_thread.h) feeds what it hears and takes the work
// that belongs to the data plane's Context; the program's thread (U) calls the second half and
// waits there, either on the condition or, without the lock, inside a communicator that watches the
// bell. worker_runtime/core/README.md says which thread carries out which action.
//
// Turned down: U posts requests to R and waits for answers. It would need no lock around the core,
// but each commit would cost two thread switches, and on a busy machine each costs a time slice.
class Member final : public StateSource {
 public:
  // All must outlive the member. `wake_fd` is an eventfd that makes R look for work.
  struct Parts {
    WorkerPage& page;
    AgentSocket& socket;
    int bell_fd;
    int wake_fd;
    WorkerIncarnation self;
  };
  explicit Member(Parts parts);
  ~Member() override;
  // Where peers reach this worker; before the threads start.
  void SetDataEndpoint(Endpoint data) { data_ = std::move(data); }

  // ---- R ----------------------------------------
  // Rereads the commit word and tells the core; the bell is drained if it had nothing to say.
  void WordMayHaveChanged();
  void RosterCame(Roster roster);
  void FinishCame(const FinishRecord& record);
  void LeaveCame();
  void StopCame();
  void OfferedAgain(WorkerIncarnation self);
  void MeshCame(const GenerationId& generation, std::unique_ptr<Mesh> mesh);
  // The other way round: gives the mesh back if this worker has not used its generation's edges.
  std::unique_ptr<Mesh> GiveBackMesh(const GenerationId& generation, Channel channel);
  void EdgesFailed(const GenerationId& generation, const Context::Failure& failure);
  void StateOffered(const GenerationId& generation, const Context::Offer& offer);
  // Where the offered state goes; none while the program is still in its function, which may write
  // there, or when the sizes differ.
  std::optional<std::span<std::byte>> RoomForState();
  void StateCame(const GenerationId& generation, const Held& held);
  // True when U waits for its memory back: R ends the transfer, then says so.
  bool TransferMustStop();
  void TransferStopped(const GenerationId& generation);
  // Nothing is written for a fetch any more that ended without state, or was dropped.
  void TransferEnded();
  void FetchFailed(const GenerationId& generation, WorkerIncarnation holder);

  // The answer to a put or get; of one that is over: nothing.
  void StoreAnswered(local::StoreReply reply);

  // Connect, RetryEdges, Disconnect, Fetch, AcceptState and RunReturns, in order.
  std::deque<WorkerAction> TakeLinkWork();
  // Further connections of a generation that the program has asked for.
  struct Wanted {
    Roster roster;
    Channel channel;
  };
  std::deque<Wanted> TakeWanted();
  void CreatedMeshCame(const GenerationId& generation, Channel channel, std::unique_ptr<Mesh> mesh);
  // True once after the word has moved to another generation: askers may be answered now.
  bool TakeRetryRequests();
  // Destroys the communicators of generations up to it and lets the bell fall silent.
  void Disconnect(GenerationNumber up_to);
  void FlushSocket();
  void SendLeaving();
  bool HasUnsent();

  // StateSource, called by the Context in R.
  Answer Offer(const GenerationId& generation, WorkerIncarnation whose) override;
  void Done(const GenerationId& generation, WorkerIncarnation asker) override;

  // ---- U: as in Session ----------------------------------------
  using Deadline = Session::Deadline;
  // `state_fd` is the memfd for the committed copies. Errors: FAILED_PRECONDITION when there is
  // state already, or too late; those of StateMemory and StateItems.
  Status CreateState(int state_fd, size_t bytes);
  Status RegisterItem(int state_fd, StateItem item);
  // Null without RegisterItem.
  StateItems* items() { return items_.get(); }
  // Of CreateState; empty without it.
  std::span<std::byte> current();
  std::span<std::byte> next();
  uint64_t committed_step();
  Status Join(Deadline deadline);
  std::optional<Membership> membership();
  Status Commit(uint64_t step, Deadline deadline);
  Status Finish(Deadline deadline);
  void RequestStop();  // any thread
  bool stop_requested();
  bool done();
  Standing standing();
  std::vector<MemberView> members();
  StatusOr<LoopEvent> Poll();
  StatusOr<int> EventFd();
  Status Put(const std::string& key, std::string value, Deadline deadline);
  StatusOr<std::string> Get(const std::string& key, Deadline deadline);
  // Runs one operation on the program's communicator, stamped as `phase`, and handles its errors.
  // kWorld: no rank completes it before all have called it, so a commit may go by it (P6).
  enum class Reach : uint8_t { kWorld, kNotWorld };
  struct Where {
    Reach reach = Reach::kWorld;
    int communicator = 0;  // as in Session::Call; only 0 is what commits go by
  };
  template <class Operation>
  Status Collective(Where where, Operation operation, Phase phase = Phase::kInCollective);
  StatusOr<int> CreateCommunicator(Deadline deadline);

 private:
  // The connections of one generation. Shared by the table and the thread that is inside an
  // operation when the table drops it.
  struct Wires {
    GenerationId generation;
    std::shared_ptr<Communicator> main;
    std::vector<std::shared_ptr<Communicator>> created;  // null: its edges don't stand yet
    bool used = false;  // entered: what breaks from now on is somebody's loss
    bool said_finished = false;
  };
  // The commit call that U is in.
  struct CommitCall {
    Held state;  // digest and step; the version is filled in by CopyState
    std::optional<Agreement> agree;
    std::optional<StateVersion> copy;
    std::optional<bool> answer;
  };

  void Feed(const WorkerEvent& event) REQUIRES_LOCK(mutex_);
  bool FetchIsReplaced() const REQUIRES_LOCK(mutex_);
  void FeedWord() REQUIRES_LOCK(mutex_);
  // Feed by U: also wakes R for the work that is its.
  void FeedFromProgram(const WorkerEvent& event) REQUIRES_LOCK(mutex_);
  void DrainBell() REQUIRES_LOCK(mutex_);
  void StampPhase() REQUIRES_LOCK(mutex_);
  template <class Action>
  void Carry(const Action& action) REQUIRES_LOCK(mutex_);
  void OpenCall(const Roster& roster, bool restored) REQUIRES_LOCK(mutex_);
  // This worker cannot go on: every later call answers with `why`.
  void GiveUp(Status why) REQUIRES_LOCK(mutex_);
  // And so would every other life of it: the job is to end.
  void GiveUpProgram(Status why) REQUIRES_LOCK(mutex_);
  void Send(local::Frame frame) REQUIRES_LOCK(mutex_);
  const Wires* WiresOf(const GenerationId& generation) REQUIRES_LOCK(mutex_);
  void WakeRuntime();
  // False when the deadline has passed.
  bool WaitUntil(Deadline deadline) REQUIRES_LOCK(mutex_);

  Status EnterNext(Deadline deadline);
  // ---- member_state.cc
  Status CheckNoState() REQUIRES_LOCK(mutex_);
  Status PrepareCopies();
  Status Synchronise(Deadline deadline);
  StatusOr<uint64_t> TakeFirstState(Communicator& communicator, Deadline deadline);
  // Gives `next` room for what is to be copied or received there.
  StatusOr<std::span<std::byte>> MakeRoom(size_t bytes);
  // Makes `next` what is to be committed; its digest.
  StatusOr<uint64_t> FillNext();
  // The program's own memory, from the committed copy, unless it has just been done.
  Status RestoreItems();
  Status RestoreEarly();

  void DeclareReady() REQUIRES_LOCK(mutex_);
  void SayFinished(Deadline deadline);
  // `next` is filled and has this digest.
  Status CommitNext(const StatusOr<uint64_t>& digest, uint64_t step, Deadline deadline);
  Status CommitLocked(Deadline deadline) REQUIRES_LOCK(mutex_);
  Status Await(Deadline deadline) REQUIRES_LOCK(mutex_);
  void PublishCommit() REQUIRES_LOCK(mutex_);
  // Why the call that U computes in can do nothing any more; OK if it can.
  Status CallStatus() REQUIRES_LOCK(mutex_);
  // U is back in the runtime, where `next` is free for a transfer: waits until a call may be
  // opened, run may return, or the deadline has passed (then OK as well, and there is no news).
  Status WaitForNews(Deadline deadline) REQUIRES_LOCK(mutex_);
  void SetProgramPhase(Phase phase) REQUIRES_LOCK(mutex_);
  StatusOr<std::shared_ptr<Communicator>> BeginCollective(Where where, Phase phase);
  Status EndCollective(Where where, const Communicator& communicator, const Status& status);

  // member_loop.cc: what Poll says, and the descriptor that says the same.
  StatusOr<LoopEvent> LookForLoop() REQUIRES_LOCK(mutex_);
  void RingLoop() REQUIRES_LOCK(mutex_);

  // member_store.cc
  StatusOr<std::string> AskStore(const local::Frame& frame, const std::string& what,
                                 Deadline deadline) REQUIRES_LOCK(mutex_);

  // The generation that U computes in from now on.
  void SetCall(Roster roster) REQUIRES_LOCK(mutex_);

  const Parts parts_;
  const BellInterrupt interrupt_;
  Endpoint data_;
  std::unique_ptr<StateItems> items_;  // of U alone
  StateVersion restored_;              // within a Join: what the program's own memory holds

  Mutex mutex_;
  ConditionVariable changed_;
  WorkerIncarnation self_ GUARDED_BY(mutex_);
  WorkerCore core_ GUARDED_BY(mutex_);
  std::unique_ptr<StateMemory> memory_ GUARDED_BY(mutex_);
  std::map<GenerationNumber, Wires> wires_ GUARDED_BY(mutex_);
  std::deque<WorkerAction> link_work_ GUARDED_BY(mutex_);
  std::deque<Wanted> wanted_ GUARDED_BY(mutex_);
  GenerationNumber word_generation_ GUARDED_BY(mutex_);
  bool retry_requests_ GUARDED_BY(mutex_) = false;
  size_t offered_bytes_ GUARDED_BY(mutex_) = 0;
  bool filling_ GUARDED_BY(mutex_) = false;  // R writes into `next`

  bool ready_declared_ GUARDED_BY(mutex_) = false;
  bool parked_ GUARDED_BY(mutex_) = false;                   // U waits in WaitForNews
  std::optional<Roster> opened_ GUARDED_BY(mutex_);          // for U to take, which starts a call
  std::optional<Roster> call_ GUARDED_BY(mutex_);            // what U computes in, over or not
  std::optional<Membership> membership_ GUARDED_BY(mutex_);  // in it
  bool call_over_ GUARDED_BY(mutex_) = false;
  CommitCall commit_ GUARDED_BY(mutex_);
  bool stop_requested_ GUARDED_BY(mutex_) = false;  // agreed by a commit of this call
  Agreement contribution_ GUARDED_BY(mutex_);       // to the world collectives of the program
  Phase program_phase_ GUARDED_BY(mutex_) = Phase::kOutside;
  bool returned_ GUARDED_BY(mutex_) = false;  // RunReturns

  bool reformed_ GUARDED_BY(mutex_) = false;     // moved at a boundary, Poll has not said so yet
  bool wanted_told_ GUARDED_BY(mutex_) = false;  // Poll has said that a commit is wanted
  LoopBell loop_bell_ GUARDED_BY(mutex_);
  uint32_t store_request_ GUARDED_BY(mutex_) = 0;  // of the newest put or get
  std::optional<local::StoreReply> store_reply_ GUARDED_BY(mutex_);

  Status fatal_ GUARDED_BY(mutex_);  // nothing goes on after it; OK: none
};

template <class Operation>
Status Member::Collective(Where where, Operation operation, Phase phase) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Communicator> communicator, BeginCollective(where, phase));
  const Status status = operation(*communicator);
  return EndCollective(where, *communicator, status);
}

}  // namespace elastic::internal
