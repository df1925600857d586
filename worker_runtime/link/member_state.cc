#include <algorithm>

#include "rendezvous/base/hash.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/member.h"
#include "worker_runtime/link/member_errors.h"

// The program's state: where its committed copies lie, how one is made and comes back into the
// program's own memory, where one from another worker is put, what the first members start from.

namespace elastic::internal {

// ---- U: what the state is ----------------------------------------

Status Member::CheckNoState() {
  if (ready_declared_ || !memory_->current().empty()) {
    return FailedPreconditionError(
        "the state exists already or the job was joined: call elastic_state_create once, before "
        "elastic_join or elastic_run");
  }
  return items_ == nullptr ? OkStatus() : MixedStateError();
}

Status Member::CreateState(int state_fd, size_t bytes) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckNoState());
  ASSIGN_OR_RETURN(memory_, StateMemory::Create(state_fd, bytes));
  return OkStatus();
}

Status Member::RegisterItem(int state_fd, StateItem item) {
  if (items_ != nullptr) {
    return items_->Register(std::move(item));
  }
  MutexLock lock(mutex_);
  if (!memory_->current().empty()) {
    return MixedStateError();
  }
  if (ready_declared_) {
    return FirstItemTooLateError(item.name);
  }
  auto items = std::make_unique<StateItems>();
  RETURN_IF_ERROR(items->Register(std::move(item)));
  ASSIGN_OR_RETURN(memory_, StateMemory::CreateGrowing(state_fd));
  items_ = std::move(items);
  return OkStatus();
}

std::span<std::byte> Member::current() {
  MutexLock lock(mutex_);
  return memory_->grows() ? std::span<std::byte>() : memory_->current();
}

std::span<std::byte> Member::next() {
  MutexLock lock(mutex_);
  return memory_->grows() ? std::span<std::byte>() : memory_->next();
}

uint64_t Member::committed_step() { return parts_.page.held().step; }

// ---- R ----------------------------------------

std::optional<std::span<std::byte>> Member::RoomForState() {
  MutexLock lock(mutex_);
  if (!parked_ || !fatal_.ok()) {
    return std::nullopt;
  }
  if (memory_->grows()) {
    if (Status room = memory_->ResizeNext(offered_bytes_); !room.ok()) {
      GiveUp(std::move(room));
      return std::nullopt;
    }
  } else if (offered_bytes_ != memory_->next().size()) {
    GiveUp(InvalidArgumentError(StrCat("the state of this job has ", offered_bytes_,
                                       " bytes, this program's elastic_state_create asked for ",
                                       memory_->next().size(),
                                       ": start the same program on all hosts")));
    return std::nullopt;
  }
  filling_ = true;
  return memory_->next();
}

// ---- U: commit ----------------------------------------

// New memory is prefaulted without the lock: that takes long, and nobody else looks at it yet.
StatusOr<std::span<std::byte>> Member::MakeRoom(size_t bytes) {
  std::span<std::byte> next;
  std::span<std::byte> untouched;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(memory_->ResizeNext(bytes));
    next = memory_->next();
    untouched = memory_->TakeNewMemory();
  }
  RETURN_IF_ERROR(StateMemory::Prefault(untouched));
  return next;
}

// Both copies have memory before this worker can be put into a generation, where others would wait
// for it.
Status Member::PrepareCopies() {
  if (items_ == nullptr) {
    return OkStatus();
  }
  {
    MutexLock lock(mutex_);
    if (ready_declared_) {
      return OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const size_t bytes, items_->ImageBytes());
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(MakeRoom(bytes).status());
    MutexLock lock(mutex_);
    memory_->Flip();
  }
  return OkStatus();
}

// A generation that is over in the middle of a large state ends this at once: the next one waits
// for this worker.
StatusOr<uint64_t> Member::FillNext() {
  GenerationNumber generation;
  std::span<std::byte> next;
  {
    MutexLock lock(mutex_);
    generation = call_->id.number;
    next = memory_->next();
  }
  const EndEarly over = [this, generation] { return interrupt_.Over(generation); };
  std::optional<uint64_t> digest;
  if (items_ != nullptr) {
    ASSIGN_OR_RETURN(const size_t bytes, items_->ImageBytes());
    ASSIGN_OR_RETURN(next, MakeRoom(bytes));
    digest = items_->Pack(next, over);
  } else {
    digest = HashUnlessOver(next, over);
  }
  return digest ? StatusOr<uint64_t>(*digest) : GenerationIsOver();
}

// ---- U: join ----------------------------------------

// The first members agree on rank 0's initial state and commit it as version 0 (P7). It goes into
// `next`, so that a loss in the middle leaves every rank's own initial state whole.
Status Member::Synchronise(Deadline deadline) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = call_->kind == GenerationKind::kInstalled && !call_->resume.valid();
  }
  if (!first) {
    return RestoreItems();
  }
  uint64_t digest = 0;
  RETURN_IF_ERROR(Collective(
      {Reach::kNotWorld, 0},
      [&](Communicator& communicator) -> Status {
        ASSIGN_OR_RETURN(digest, TakeFirstState(communicator, deadline));
        return OkStatus();
      },
      Phase::kRestoring));
  return CommitNext(digest, 0, deadline);
}

StatusOr<uint64_t> Member::TakeFirstState(Communicator& communicator, Deadline deadline) {
  const bool gives = communicator.rank() == 0;
  if (gives && items_ != nullptr) {
    RETURN_IF_ERROR(FillNext().status());
  }
  std::span<const std::byte> current;
  std::span<std::byte> next;
  {
    MutexLock lock(mutex_);
    current = memory_->current();
    next = memory_->next();
  }
  uint64_t bytes = next.size();
  RETURN_IF_ERROR(communicator.Broadcast(&bytes, sizeof bytes, 0, {}, deadline).status());
  if (!gives && items_ != nullptr) {
    ASSIGN_OR_RETURN(next, MakeRoom(bytes));
  }
  if (bytes != next.size()) {
    return InvalidArgumentError(StrCat("the state of rank 0 has ", bytes,
                                       " bytes, this program's elastic_state_create asked for ",
                                       next.size(), ": start the same program on all hosts"));
  }
  if (gives && items_ == nullptr) {
    std::ranges::copy(current, next.begin());
  }
  if (bytes > 0) {
    RETURN_IF_ERROR(communicator.Broadcast(next.data(), next.size(), 0, {}, deadline).status());
  }
  if (!gives && items_ != nullptr) {
    RETURN_IF_ERROR(items_->Restore(next));
  }
  return HashBytes(next.data(), next.size());
}

// Before the next generation is known: nothing else is to be done meanwhile, and mostly it resumes
// from what is held here.
Status Member::RestoreEarly() {
  {
    MutexLock lock(mutex_);
    if (!call_over_) {
      return OkStatus();
    }
  }
  return RestoreItems();
}

// The committed copy stays as it is: a second loss must still find it (P8). No transfer writes over
// it meanwhile, because one begins only while this thread is parked.
Status Member::RestoreItems() {
  if (items_ == nullptr) {
    return OkStatus();
  }
  StateVersion version;
  std::span<const std::byte> committed;
  {
    MutexLock lock(mutex_);
    version = parts_.page.held().version;
    if (!version.valid() || version == restored_) {
      return OkStatus();
    }
    committed = memory_->current();
    SetProgramPhase(Phase::kRestoring);
  }
  Status status = items_->Restore(committed);
  MutexLock lock(mutex_);
  SetProgramPhase(Phase::kOutside);
  if (!status.ok()) {
    GiveUp(status);
    return status;
  }
  restored_ = version;
  parts_.page.stamps().restored.store(ToNanoseconds(Now()), std::memory_order_relaxed);
  return status;
}

}  // namespace elastic::internal
