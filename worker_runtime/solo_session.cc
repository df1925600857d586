#include "worker_runtime/solo_session.h"

#include <sys/mman.h>
#include <cerrno>
#include <cstring>

#include "collectives/limits.h"
#include "collectives/reduce.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

namespace {

StatusOr<UniqueFd> MakeMemfd() {
  UniqueFd fd(memfd_create("elastic-state", MFD_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError(errno, "memfd_create for the state");
  }
  return fd;
}

}  // namespace

Status SoloSession::CreateState(size_t bytes) {
  if (items_ != nullptr) {
    return MixedStateError();
  }
  if (memory_ != nullptr || joined_) {
    return FailedPreconditionError(
        "the state exists already or the job was joined: call elastic_state_create once, before "
        "elastic_join or elastic_run");
  }
  ASSIGN_OR_RETURN(const UniqueFd fd, MakeMemfd());
  ASSIGN_OR_RETURN(memory_, StateMemory::Create(fd.get(), bytes));
  return OkStatus();
}

Status SoloSession::RegisterItem(StateItem item) {
  if (items_ != nullptr) {
    return items_->Register(std::move(item));
  }
  if (memory_ != nullptr) {
    return MixedStateError();
  }
  if (joined_) {
    return FirstItemTooLateError(item.name);
  }
  auto items = std::make_unique<StateItems>();
  RETURN_IF_ERROR(items->Register(std::move(item)));
  ASSIGN_OR_RETURN(const UniqueFd fd, MakeMemfd());
  ASSIGN_OR_RETURN(memory_, StateMemory::CreateGrowing(fd.get()));
  items_ = std::move(items);
  return OkStatus();
}

void* SoloSession::current() const {
  return memory_ == nullptr || items_ != nullptr ? nullptr : memory_->current().data();
}

void* SoloSession::next() const {
  return memory_ == nullptr || items_ != nullptr ? nullptr : memory_->next().data();
}

// Nothing is lost in a world of one, but a function that answers ABORTED is called again with the
// committed state, as in a job.
Status SoloSession::Join(Deadline) {
  if (items_ != nullptr) {
    RETURN_IF_ERROR(joined_ ? items_->Restore(memory_->current()) : CommitItems());
  }
  joined_ = true;
  RingLoop();
  return OkStatus();
}

Status SoloSession::CommitItems() {
  ASSIGN_OR_RETURN(const size_t bytes, items_->ImageBytes());
  RETURN_IF_ERROR(memory_->ResizeNext(bytes));
  items_->Pack(memory_->next(), [] { return false; });
  items_->Committed();
  memory_->Flip();
  return OkStatus();
}

std::optional<Membership> SoloSession::membership() const {
  if (!joined_) {
    return std::nullopt;
  }
  return Membership{.generation = GenerationNumber{1},
                    .place = Placement{.rank = 0,
                                       .size = 1,
                                       .local_rank = 0,
                                       .local_index = 0,
                                       .local_size = 1,
                                       .cross_rank = 0,
                                       .cross_size = 1,
                                       .local_leader = true}};
}

Status SoloSession::Commit(uint64_t step, Deadline) {
  if (items_ != nullptr) {
    RETURN_IF_ERROR(CommitItems());
  } else if (memory_ != nullptr) {
    memory_->Flip();
  }
  step_ = step;
  stop_requested_ = stop_wanted_;
  RingLoop();
  return OkStatus();
}

Status SoloSession::Finish(Deadline) {
  done_ = true;
  RingLoop();
  return OkStatus();
}

StatusOr<int> SoloSession::CreateCommunicator(Deadline) {
  if (created_ == kCreatedCommunicatorsMax) {
    return TooManyCommunicators();
  }
  return ++created_;
}

Status SoloSession::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                              const Call& call) {
  return ReduceScatter(in, out, count, type, op, call);
}

Status SoloSession::ReduceScatter(const void* in, void* out, size_t count, DataType type,
                                  ReduceOp op, const Call&) {
  if (ReduceKernelOf(type, op) == nullptr) {
    return InvalidArgumentError("there is no average of u8, whose sums wrap at 256");
  }
  if (in != out && count > 0) {
    std::memmove(out, in, count * SizeOf(type));
  }
  return OkStatus();
}

Status SoloSession::Broadcast(void*, size_t, int root, const Call&) {
  if (root != 0) {
    return InvalidArgumentError(StrCat("root ", root, " is not a rank: the size is 1"));
  }
  return OkStatus();
}

Status SoloSession::AllGather(const void* in, void* out, std::span<const size_t> bytes_of,
                              const Call&) {
  if (in != out && bytes_of[0] > 0) {
    std::memmove(out, in, bytes_of[0]);
  }
  return OkStatus();
}

Status SoloSession::Barrier(const Call&) { return OkStatus(); }

}  // namespace elastic::internal
