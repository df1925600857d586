#include "worker_runtime/link/member.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "rendezvous/base/hash.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

// The core's events and actions under the lock, and what the runtime's thread hears.

namespace elastic::internal {

namespace {

void Stamp(std::atomic<int64_t>& stamp) {
  stamp.store(ToNanoseconds(Now()), std::memory_order_relaxed);
}

}  // namespace

Member::Member(Parts parts)
    : parts_(parts),
      interrupt_(parts.page, parts.bell_fd),
      self_(parts.self),
      core_(parts.self),
      memory_(std::make_unique<StateMemory>()) {
  parts_.page.SetPhase(Phase::kStarting);
}

Member::~Member() = default;

// ---- the core ----------------------------------------

// What a Cas and a TakeState are followed by comes before anything else, so its actions go to the
// front.
void Member::Feed(const WorkerEvent& event) {
  WorkerActions first = core_.Step(event);
  std::deque<WorkerAction> queue(std::make_move_iterator(first.begin()),
                                 std::make_move_iterator(first.end()));
  while (!queue.empty()) {
    const WorkerAction action = std::move(queue.front());
    queue.pop_front();
    std::visit([this](const auto& alternative) REQUIRES_LOCK(mutex_) { Carry(alternative); },
               action);
    WorkerActions more;
    if (std::holds_alternative<worker_action::Cas>(action)) {
      const CommitWord word = parts_.page.word();
      more = core_.Step(worker_event::WordSeen{word, parts_.page.IdentityOf(word)});
    } else if (const auto* take = std::get_if<worker_action::TakeState>(&action)) {
      more = core_.Step(worker_event::StateTaken{take->state});
    }
    queue.insert(queue.begin(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  const GenerationNumber generation = parts_.page.word().generation;
  if (generation != word_generation_) {
    word_generation_ = generation;
    retry_requests_ = true;
  }
  StampPhase();
  RingLoop();
  changed_.notify_all();
}

void Member::FeedWord() {
  const CommitWord word = parts_.page.word();
  Feed(worker_event::WordSeen{word, parts_.page.IdentityOf(word)});
}

void Member::FeedFromProgram(const WorkerEvent& event) {
  Feed(event);
  if (!link_work_.empty() || retry_requests_ || parts_.socket.has_unsent()) {
    WakeRuntime();
  }
}

void Member::WakeRuntime() { (void)eventfd_write(parts_.wake_fd, 1); }

// The core knows nothing of readiness, nor what U does inside an open generation.
void Member::StampPhase() {
  Phase phase = core_.phase();
  if (!ready_declared_) {
    phase = Phase::kStarting;
  } else if (phase == Phase::kOutside) {
    phase = program_phase_;
  }
  parts_.page.SetPhase(phase);
}

template <class Action>
void Member::Carry(const Action& action) {
  using namespace worker_action;
  if constexpr (std::is_same_v<Action, Cas>) {
    parts_.page.CompareExchange(action.from, action.to, action.generation);
  } else if constexpr (std::is_same_v<Action, ReportEntered>) {
    Send(local::MakeFrame(local::FrameKind::kEntered,
                          local::Entered{local::ToWire(action.generation)}));
  } else if constexpr (std::is_same_v<Action, ReportAccusation>) {
    Send(local::MakeFrame(local::FrameKind::kAccuse,
                          local::Accuse{local::ToWire(action.accusation.generation),
                                        local::ToWire(action.accusation.accused)}));
  } else if constexpr (std::is_same_v<Action, ReportFinished>) {
    Send(local::MakeFrame(
        local::FrameKind::kFinished,
        local::Finished{local::ToWire(action.generation), local::ToWire(action.state)}));
  } else if constexpr (std::is_same_v<Action, ReportWordSettled>) {
    Send(local::MakeFrame(local::FrameKind::kWordSettled));
  } else if constexpr (std::is_same_v<Action, Contribute>) {
    contribution_ = action.own;
  } else if constexpr (std::is_same_v<Action, TakeState>) {
    parts_.page.PublishHeld(action.state,
                            {.offset = memory_->next_offset(), .bytes = memory_->next().size()});
    memory_->Flip();
  } else if constexpr (std::is_same_v<Action, AwaitAgreement>) {
    commit_.agree = action.own;
  } else if constexpr (std::is_same_v<Action, CopyState>) {
    commit_.copy = action.version;
  } else if constexpr (std::is_same_v<Action, CommitReturns>) {
    commit_.answer = action.committed;
    stop_requested_ = stop_requested_ || action.stop != 0;
  } else if constexpr (std::is_same_v<Action, Open>) {
    OpenCall(action.roster, action.restored);
  } else if constexpr (std::is_same_v<Action, Close>) {
    if (opened_ && opened_->id == action.generation) {
      opened_.reset();
    }
    if (call_ && call_->id == action.generation) {
      call_over_ = true;
    }
  } else if constexpr (std::is_same_v<Action, Warn>) {
    LogWarning(action.message);
  } else if constexpr (std::is_same_v<Action, Fatal>) {
    action.of_program ? GiveUpProgram(InvalidArgumentError(action.message))
                      : GiveUp(InternalError(action.message));
  } else {
    if constexpr (std::is_same_v<Action, RunReturns>) {
      returned_ = true;
    }
    link_work_.emplace_back(action);
  }
}

void Member::OpenCall(const Roster& roster, bool restored) {
  if (const auto wires = wires_.find(roster.id.number); wires != wires_.end()) {
    wires->second.used = true;
  }
  if (restored) {
    opened_ = roster;
    stop_requested_ = false;  // some may not have heard: the next commit says it again
    Stamp(parts_.page.stamps().restored);
  } else {
    SetCall(roster);
    reformed_ = true;
  }
}

// Its connections close, so that peers need not wait for the process to exit.
void Member::GiveUp(Status why) {
  LogError(why.message());
  fatal_ = std::move(why);
  link_work_.emplace_back(worker_action::Disconnect{parts_.page.word().generation});
  WakeRuntime();
  RingLoop();
  changed_.notify_all();
}

void Member::GiveUpProgram(Status why) {
  local::ProgramError body{};
  why.message().copy(body.message, sizeof body.message - 1);
  Send(local::MakeFrame(local::FrameKind::kProgramError, body));
  GiveUp(std::move(why));
}

void Member::Send(local::Frame frame) { parts_.socket.Send(std::move(frame)); }

const Member::Wires* Member::WiresOf(const GenerationId& generation) {
  const auto found = wires_.find(generation.number);
  const bool complete = found != wires_.end() && found->second.generation == generation &&
                        found->second.main != nullptr;
  return complete ? &found->second : nullptr;
}

// ---- what the runtime's thread hears ----------------------------------------

void Member::WordMayHaveChanged() {
  MutexLock lock(mutex_);
  const CommitWord word = parts_.page.word();
  if (word.fenced) {
    // Waits of the program sleep on the bell: it stays loud until their generation is gone.
    Stamp(parts_.page.stamps().bell_heard);
  } else {
    DrainBell();
  }
  FeedWord();
}

// A fence between the last look and the draining would leave waits of the program deaf: ring again.
void Member::DrainBell() {
  eventfd_t rings = 0;
  (void)eventfd_read(parts_.bell_fd, &rings);
  if (parts_.page.word().fenced) {
    (void)eventfd_write(parts_.bell_fd, 1);
  }
}

void Member::RosterCame(Roster roster) {
  MutexLock lock(mutex_);
  if (roster.kind == GenerationKind::kInstalled) {
    Stamp(parts_.page.stamps().roster_came);
  }
  Feed(worker_event::RosterCame{std::move(roster)});
  FeedWord();
}

void Member::FinishCame(const FinishRecord& record) {
  MutexLock lock(mutex_);
  Feed(worker_event::FinishRecorded{record});
}

void Member::LeaveCame() {
  MutexLock lock(mutex_);
  Feed(worker_event::LeaveTold{});
}

void Member::StopCame() {
  MutexLock lock(mutex_);
  FeedWord();
  Feed(worker_event::StopWanted{kStopByOperator});
}

// The word first: what is open under the old name is over by now.
void Member::OfferedAgain(WorkerIncarnation self) {
  MutexLock lock(mutex_);
  FeedWord();
  LogInfo("the job went on without this worker; offered again as worker ", ToString(self));
  self_ = self;
  Feed(worker_event::OfferedAgain{self});
}

void Member::MeshCame(const GenerationId& generation, std::unique_ptr<Mesh> mesh) {
  auto communicator = std::make_shared<Communicator>(std::move(mesh), interrupt_);
  MutexLock lock(mutex_);
  Wires& wires = wires_[generation.number];
  if (wires.generation != generation) {
    wires = Wires{.generation = generation, .main = nullptr, .created = {}};
  }
  wires.main = std::move(communicator);
  Stamp(parts_.page.stamps().edges_up);
  Feed(worker_event::EdgesUp{generation});
}

std::unique_ptr<Mesh> Member::GiveBackMesh(const GenerationId& generation, Channel channel) {
  MutexLock lock(mutex_);
  const auto found = wires_.find(generation.number);
  if (found == wires_.end() || found->second.generation != generation || found->second.used) {
    return nullptr;
  }
  if (channel != Channel::kMain || found->second.main == nullptr) {
    return nullptr;
  }
  Feed(worker_event::EdgesLost{generation});
  return std::exchange(found->second.main, nullptr)->Dissolve();
}

void Member::EdgesFailed(const GenerationId& generation, const Context::Failure& failure) {
  MutexLock lock(mutex_);
  Feed(worker_event::EdgesFailed{.generation = generation,
                                 .peer = failure.peer,
                                 .over_there = failure.status.code() == StatusCode::kAborted,
                                 .what = failure.status.message()});
}

// The core has asked anew, but the runtime's thread has not come to it: what the connection before
// gives is not for the fetch that the core knows. An offer that was taken for it would be accepted
// on a connection that is about to be closed.
bool Member::FetchIsReplaced() const {
  return std::ranges::any_of(link_work_, [](const WorkerAction& action) {
    return std::holds_alternative<worker_action::Fetch>(action);
  });
}

void Member::StateOffered(const GenerationId& generation, const Context::Offer& offer) {
  MutexLock lock(mutex_);
  if (FetchIsReplaced()) {
    return;
  }
  offered_bytes_ = offer.bytes;
  Feed(worker_event::StateOffered{generation, offer.held});
}

bool Member::TransferMustStop() {
  MutexLock lock(mutex_);
  return filling_ && !parked_;
}

void Member::TransferStopped(const GenerationId& generation) {
  MutexLock lock(mutex_);
  filling_ = false;
  Feed(worker_event::TransferStopped{generation});
}

void Member::TransferEnded() {
  MutexLock lock(mutex_);
  filling_ = false;
  changed_.notify_all();
}

void Member::StateCame(const GenerationId& generation, const Held& held) {
  MutexLock lock(mutex_);
  filling_ = false;
  FeedWord();
  if (!FetchIsReplaced()) {
    Feed(worker_event::StateCame{generation, held});
  }
}

void Member::FetchFailed(const GenerationId& generation, WorkerIncarnation holder) {
  MutexLock lock(mutex_);
  if (!FetchIsReplaced()) {
    Feed(worker_event::FetchFailed{generation, holder});
  }
}

std::deque<WorkerAction> Member::TakeLinkWork() {
  MutexLock lock(mutex_);
  return std::exchange(link_work_, {});
}

bool Member::TakeRetryRequests() {
  MutexLock lock(mutex_);
  return std::exchange(retry_requests_, false);
}

void Member::Disconnect(GenerationNumber up_to) {
  std::map<GenerationNumber, Wires> dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  while (!wires_.empty() && wires_.begin()->first <= up_to) {
    auto gone = wires_.extract(wires_.begin());
    if (gone.mapped().main != nullptr) {
      gone.mapped().main->Abort();
    }
    for (const auto& communicator : gone.mapped().created) {
      if (communicator != nullptr) {
        communicator->Abort();
      }
    }
    dropped.insert(std::move(gone));
  }
  if (!parts_.page.word().fenced) {
    DrainBell();
  }
  FeedWord();
}

void Member::FlushSocket() {
  MutexLock lock(mutex_);
  parts_.socket.Flush();
}

void Member::SendLeaving() {
  MutexLock lock(mutex_);
  Send(local::MakeFrame(local::FrameKind::kLeaving));
}

bool Member::HasUnsent() {
  MutexLock lock(mutex_);
  return parts_.socket.has_unsent();
}

// The committed buffer is served while training goes on: it is overwritten only by the step after
// the next commit, and that commit needs the asker to have entered (P6, P8).
//
// An asker whose generation is over here hears so when this worker enters the next one
// (Context::Cancel). Told earlier that there is no state, it would give up before its own fence has
// reached it.
StateSource::Answer Member::Offer(const GenerationId& generation, WorkerIncarnation whose) {
  MutexLock lock(mutex_);
  if (whose != self_) {
    return {.verdict = Verdict::kNever, .view = {}};
  }
  const CommitWord word = parts_.page.word();
  if (word.fenced || parts_.page.IdentityOf(word) != generation) {
    return {.verdict = Verdict::kLater, .view = {}};
  }
  const Held held = parts_.page.held();
  if (!held.valid()) {
    return {.verdict = Verdict::kNever, .view = {}};
  }
  return {.verdict = Verdict::kNow, .view = {.held = held, .bytes = memory_->current()}};
}

void Member::Done(const GenerationId&, WorkerIncarnation) {}

}  // namespace elastic::internal
