#include "worker_runtime/solo_session.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cstring>

#include "rendezvous/base/log.h"

namespace elastic::internal {

Status SoloSession::CreateState(size_t bytes) {
  if (memory_ != nullptr || joined_) {
    return FailedPreconditionError(
        "the state exists already or the job was joined: call elastic_state_create once, before "
        "elastic_join or elastic_run");
  }
  const int fd = memfd_create("elastic-state", MFD_CLOEXEC);
  if (fd < 0) {
    return ErrnoError(errno, "memfd_create for the state");
  }
  StatusOr<std::unique_ptr<StateMemory>> memory = StateMemory::Create(fd, bytes);
  close(fd);
  if (!memory.ok()) {
    return memory.status();
  }
  memory_ = std::move(*memory);
  return OkStatus();
}

void* SoloSession::current() const {
  return memory_ == nullptr ? nullptr : memory_->current().data();
}

void* SoloSession::next() const { return memory_ == nullptr ? nullptr : memory_->next().data(); }

Status SoloSession::Join(Deadline) {
  joined_ = true;
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
  if (memory_ != nullptr) {
    memory_->Flip();
  }
  step_ = step;
  return OkStatus();
}

Status SoloSession::Finish(Deadline) {
  done_ = true;
  return OkStatus();
}

Status SoloSession::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp,
                              Deadline) {
  if (in != out) {
    std::memmove(out, in, count * SizeOf(type));
  }
  return OkStatus();
}

Status SoloSession::Broadcast(void*, size_t, int root, Deadline) {
  if (root != 0) {
    return InvalidArgumentError(StrCat("root ", root, " is not a rank: the size is 1"));
  }
  return OkStatus();
}

Status SoloSession::AllGather(const void* in, void* out, size_t bytes, Deadline) {
  if (in != out) {
    std::memmove(out, in, bytes);
  }
  return OkStatus();
}

Status SoloSession::Barrier(Deadline) { return OkStatus(); }

}  // namespace elastic::internal
