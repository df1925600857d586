#include <algorithm>

#include "rendezvous/base/log.h"
#include "worker_runtime/link/member.h"

// The program's state: where it lies, where one that comes is put, and what the first members
// start from.

namespace elastic::internal {

void Member::UseState(std::unique_ptr<StateMemory> memory) {
  MutexLock lock(mutex_);
  memory_ = std::move(memory);
}

std::span<std::byte> Member::current() {
  MutexLock lock(mutex_);
  return memory_->current();
}

std::span<std::byte> Member::next() {
  MutexLock lock(mutex_);
  return memory_->next();
}

uint64_t Member::committed_step() { return parts_.page.held().step; }

// ---- R ----------------------------------------

std::optional<std::span<std::byte>> Member::RoomForState() {
  MutexLock lock(mutex_);
  if (!parked_ || !fatal_.ok()) {
    return std::nullopt;
  }
  if (offered_bytes_ != memory_->bytes()) {
    GiveUp(InvalidArgumentError(StrCat("the state of this job has ", offered_bytes_,
                                       " bytes, this program's elastic_state_create asked for ",
                                       memory_->bytes(), ": start the same program on all hosts")));
    return std::nullopt;
  }
  filling_ = true;
  return memory_->next();
}

// ---- U ----------------------------------------

// The first members agree on rank 0's initial state and commit it as version 0 (P7). It goes into
// `next`, so that a loss in the middle leaves every rank's own initial state whole.
Status Member::Synchronise(Deadline deadline) {
  bool first = false;
  std::span<std::byte> source;
  std::span<std::byte> target;
  {
    MutexLock lock(mutex_);
    first = call_->kind == GenerationKind::kInstalled && !call_->resume.valid();
    source = memory_->current();
    target = memory_->next();
  }
  if (!first) {
    return OkStatus();
  }
  const auto take_first_state = [&](Communicator& communicator) -> Status {
    uint64_t bytes = source.size();
    RETURN_IF_ERROR(communicator.Broadcast(&bytes, sizeof bytes, 0, {}, deadline).status());
    if (bytes != source.size()) {
      return InvalidArgumentError(StrCat("the state of rank 0 has ", bytes,
                                         " bytes, this program's elastic_state_create asked for ",
                                         source.size(), ": start the same program on all hosts"));
    }
    if (bytes == 0) {
      return OkStatus();
    }
    if (communicator.rank() == 0) {
      std::copy(source.begin(), source.end(), target.begin());
    }
    return communicator.Broadcast(target.data(), target.size(), 0, {}, deadline).status();
  };
  RETURN_IF_ERROR(Collective(take_first_state, Phase::kRestoring));
  return Commit(0, deadline);
}

}  // namespace elastic::internal
