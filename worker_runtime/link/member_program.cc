#include <utility>

#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/member.h"
#include "worker_runtime/link/member_errors.h"

// The calls of the program's thread.

namespace elastic::internal {

std::optional<Membership> Member::membership() {
  MutexLock lock(mutex_);
  return membership_;
}

void Member::SetCall(Roster roster) {
  membership_.reset();
  if (const std::optional<Placement> place = PlacementOf(roster, self_)) {
    membership_ = Membership{.generation = roster.id.number, .place = *place};
  }
  call_ = std::move(roster);
  call_over_ = false;
  reformed_ = false;
}

bool Member::done() {
  MutexLock lock(mutex_);
  return returned_;
}

bool Member::WaitUntil(Deadline deadline) {
  if (!deadline) {
    changed_.wait(mutex_);
    return true;
  }
  const Duration left = *deadline - Now();
  if (left <= Duration::zero()) {
    return false;
  }
  changed_.wait_for(mutex_, left);
  return true;
}

Status Member::WaitForNews(Deadline deadline) {
  parked_ = true;
  WakeRuntime();
  bool in_time = true;
  while (!opened_ && !returned_ && fatal_.ok() && in_time) {
    in_time = WaitUntil(deadline);
  }
  parked_ = false;
  // From the return on `next` is the program's, and a transfer may be writing there.
  while (filling_) {
    WakeRuntime();
    changed_.wait(mutex_);
  }
  return fatal_;
}

void Member::SetProgramPhase(Phase phase) {
  program_phase_ = phase;
  StampPhase();
}

Status Member::CallStatus() {
  if (!fatal_.ok()) {
    return fatal_;
  }
  if (call_ && call_over_) {
    return GenerationIsOver();
  }
  if (returned_) {
    return FailedPreconditionError(
        "the job is finished: nothing can be committed or reduced after elastic_finish or "
        "elastic_run has returned");
  }
  return call_ ? OkStatus() : GenerationIsOver();
}

// ---- join ----------------------------------------

Status Member::Join(Deadline deadline) {
  RETURN_IF_ERROR(PrepareCopies());
  restored_ = {};
  while (true) {
    RETURN_IF_ERROR(RestoreEarly());
    RETURN_IF_ERROR(EnterNext(deadline));
    if (done()) {
      return OkStatus();
    }
    Status synchronised = Synchronise(deadline);
    if (synchronised.code() == StatusCode::kAborted) {
      continue;
    }
    if (MutexLock lock(mutex_); !synchronised.ok() && fatal_.ok()) {
      GiveUp(synchronised);  // no Open comes for a generation that has been opened
    }
    return synchronised;
  }
}

void Member::DeclareReady() {
  if (ready_declared_) {
    return;
  }
  ready_declared_ = true;
  Send(local::MakeFrame(local::FrameKind::kReady, local::Ready{local::ToWire(data_)}));
  StampPhase();
}

Status Member::EnterNext(Deadline deadline) {
  MutexLock lock(mutex_);
  DeclareReady();
  program_phase_ = Phase::kOutside;
  RETURN_IF_ERROR(WaitForNews(deadline));
  if (opened_) {
    SetCall(*std::exchange(opened_, std::nullopt));
    RingLoop();
    return OkStatus();
  }
  return returned_ ? OkStatus() : OutOfTime("waiting for a generation with this process");
}

// ---- commit ----------------------------------------

// `next` is filled and its digest taken before the word says `committing`: while it does, a fence
// waits for it (P5), and until held names `next` nobody but this thread looks there.
Status Member::Commit(uint64_t step, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CallStatus());
    SetProgramPhase(Phase::kCommitting);
  }
  return CommitNext(FillNext(), step, deadline);
}

Status Member::CommitNext(const StatusOr<uint64_t>& digest, uint64_t step, Deadline deadline) {
  MutexLock lock(mutex_);
  Status status = digest.status();
  if (digest.ok()) {
    commit_ = CommitCall{.state = {.version = {}, .digest = *digest, .step = step},
                         .agree = {},
                         .copy = {},
                         .answer = {}};
    status = CommitLocked(deadline);
  }
  if (status.ok() && items_ != nullptr) {
    items_->Committed();
  }
  if (!status.ok() && status.code() != StatusCode::kAborted && fatal_.ok()) {
    // The core is still in the middle of this commit, so there is no other.
    status.code() == StatusCode::kInvalidArgument ? GiveUpProgram(status) : GiveUp(status);
  }
  SetProgramPhase(Phase::kOutside);
  return status;
}

Status Member::CommitLocked(Deadline deadline) {
  RETURN_IF_ERROR(CallStatus());
  FeedFromProgram(worker_event::CommitWanted{call_->id});
  while (true) {
    if (!fatal_.ok()) {
      return fatal_;
    }
    if (commit_.answer) {
      return *commit_.answer ? OkStatus() : GenerationIsOver();
    }
    if (commit_.agree) {
      RETURN_IF_ERROR(Await(deadline));
    } else if (commit_.copy) {
      PublishCommit();
    } else if (!WaitUntil(deadline)) {
      return OutOfTime("waiting for the commit of the other ranks");
    }
  }
}

// Makes the agreement without the lock: it waits until every rank has come to it. When the
// generation ends instead, the core answers the commit once it has seen the word.
Status Member::Await(Deadline deadline) {
  const GenerationId generation = call_->id;
  const Agreement own = *std::exchange(commit_.agree, std::nullopt);
  const Wires* wires = WiresOf(generation);
  if (wires == nullptr) {
    return OkStatus();
  }
  const std::shared_ptr<Communicator> communicator = wires->main;
  mutex_.unlock();
  communicator->Contribute(own);
  const Status status = communicator->Agree({}, deadline).status();
  mutex_.lock();
  if (status.ok()) {
    FeedFromProgram(worker_event::Agreed{generation, communicator->agreed()});
    return OkStatus();
  }
  if (status.code() == StatusCode::kUnavailable && communicator->broken_peer()) {
    FeedFromProgram(worker_event::PeerBroken{generation, *communicator->broken_peer()});
    return OkStatus();
  }
  if (status.code() == StatusCode::kAborted) {
    FeedWord();
    WakeRuntime();
    return OkStatus();
  }
  return status;
}

// Held stands on the page before the word names its version, so no answer to a fence shows a word
// newer than held.
void Member::PublishCommit() {
  commit_.state.version = *std::exchange(commit_.copy, std::nullopt);
  parts_.page.PublishHeld(commit_.state,
                          {.offset = memory_->next_offset(), .bytes = memory_->next().size()});
  memory_->Flip();
  FeedFromProgram(worker_event::CopyDone{commit_.state});
}

// ---- stop ----------------------------------------

void Member::RequestStop() {
  MutexLock lock(mutex_);
  Feed(worker_event::StopWanted{kStopByProgram});
}

bool Member::stop_requested() {
  MutexLock lock(mutex_);
  return stop_requested_;
}

// ---- finish ----------------------------------------

// Peers that still wait for this rank in a collective would wait for ever. Whatever hinders it ends
// the generation as well.
void Member::SayFinished(Deadline deadline) {
  std::shared_ptr<Communicator> communicator;
  {
    MutexLock lock(mutex_);
    const bool open = call_ && !call_over_ && fatal_.ok();
    if (!open || WiresOf(call_->id) == nullptr) {
      return;
    }
    Wires& wires = wires_.at(call_->id.number);
    if (std::exchange(wires.said_finished, true)) {
      return;
    }
    Feed(worker_event::CollectiveWanted{call_->id});
    communicator = wires.main;
    communicator->Contribute(contribution_);
  }
  const Status said = communicator->SayFinished(deadline);
  if (!said.ok()) {
    LogInfo("peers were not told that this rank has finished: ", said.ToString());
  }
}

Status Member::Finish(Deadline deadline) {
  SayFinished(deadline);
  MutexLock lock(mutex_);
  if (!call_over_ && fatal_.ok()) {
    FeedFromProgram(worker_event::FunctionReturned{parts_.page.held(), call_->id});
  }
  RETURN_IF_ERROR(WaitForNews(deadline));
  if (returned_) {
    return OkStatus();
  }
  return opened_ ? AbortedError(
                       "a member was lost before all had finished: the function runs again "
                       "in the next generation")
                 : OutOfTime("waiting for the other members to finish");
}

}  // namespace elastic::internal
