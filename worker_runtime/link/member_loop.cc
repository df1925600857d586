#include "rendezvous/base/log.h"
#include "worker_runtime/link/member.h"

// What a program with its own loop asks for. Nothing here waits.

namespace elastic::internal {

Standing Member::standing() {
  MutexLock lock(mutex_);
  if (returned_) {
    return Standing::kFinished;
  }
  if (call_ && !call_over_) {
    return Standing::kMember;
  }
  return ready_declared_ ? Standing::kWaiting : Standing::kStarting;
}

std::vector<MemberView> Member::members() {
  MutexLock lock(mutex_);
  std::vector<MemberView> members;
  if (!call_) {
    return members;
  }
  for (const RosterEntry& entry : call_->entries) {
    if (entry.role == Role::kWorker) {
      members.push_back({.rank = entry.rank,
                         .previous_rank = entry.previous_rank,
                         .slot = entry.slot,
                         .host = entry.host,
                         .data = entry.data,
                         .incarnation = ToString(entry.incarnation)});
    }
  }
  return members;
}

// The end of the generation first: whatever else there was to say belonged to it.
StatusOr<LoopEvent> Member::LookForLoop() {
  if (!fatal_.ok()) {
    return fatal_;
  }
  if (!call_ || call_over_ || returned_) {
    return LoopEvent::kRestore;
  }
  if (reformed_) {
    return LoopEvent::kReformed;
  }
  if (stop_requested_) {
    return LoopEvent::kStopAt;
  }
  return core_.CommitWanted() ? LoopEvent::kCommitWanted : LoopEvent::kContinue;
}

StatusOr<LoopEvent> Member::Poll() {
  MutexLock lock(mutex_);
  StatusOr<LoopEvent> event = LookForLoop();
  if (event.ok() && *event == LoopEvent::kReformed) {
    reformed_ = false;
  }
  wanted_told_ = wanted_told_ || (event.ok() && *event == LoopEvent::kCommitWanted);
  RingLoop();
  return event;
}

StatusOr<int> Member::EventFd() {
  MutexLock lock(mutex_);
  StatusOr<int> descriptor = loop_bell_.Descriptor();
  RingLoop();
  return descriptor;
}

// Advice is rung for once: a program that sleeps until the next ring must hear of a loss after it.
void Member::RingLoop() {
  const StatusOr<LoopEvent> event = LookForLoop();
  const bool wanted = event.ok() && *event == LoopEvent::kCommitWanted;
  wanted_told_ = wanted_told_ && wanted;
  loop_bell_.Ring(wanted ? !wanted_told_ : !event.ok() || *event != LoopEvent::kContinue);
}

}  // namespace elastic::internal
