#include "launcher/agent/copy_server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

// The committed bytes of one dead worker, mapped read-only. Sealed against shrinking first: a page
// that vanished under a transfer would end the agent with SIGBUS.
class CopyServer::Mapping {
 public:
  static StatusOr<std::shared_ptr<Mapping>> Map(int state_fd, const HeldPlace& place) {
    if (fcntl(state_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
      return ErrnoError(errno, "sealing a state memfd");
    }
    struct stat info {};
    if (fstat(state_fd, &info) != 0) {
      return ErrnoError(errno, "fstat of a state memfd");
    }
    const auto size = static_cast<uint64_t>(info.st_size);
    if (place.offset > size || place.bytes > size - place.offset || size > kStateBytesMax) {
      return DataLossError(StrCat("the page of a dead worker says that its state has ", place.bytes,
                                  " bytes at ", place.offset, ", but its memory has ", size));
    }
    auto mapping = std::make_shared<Mapping>();
    mapping->bytes_ = size;
    if (size != 0) {
      void* memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, state_fd, 0);
      if (memory == MAP_FAILED) {
        return ErrnoError(errno, "mmap of a state memfd");
      }
      mapping->memory_ = static_cast<const std::byte*>(memory);
    }
    mapping->view_ = {place.held, {mapping->memory_ + place.offset, place.bytes}};
    return mapping;
  }
  Mapping() = default;
  ~Mapping() {
    if (memory_ != nullptr) {
      munmap(const_cast<std::byte*>(memory_), bytes_);
    }
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const StateView& view() const { return view_; }

 private:
  const std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  StateView view_;
};

CopyServer::CopyServer() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

StatusOr<std::unique_ptr<CopyServer>> CopyServer::Start(Options options) {
  std::unique_ptr<CopyServer> server(new CopyServer);
  Context::Options context;
  context.listen_address = options.listen_address;
  context.job_id = options.job_id;
  context.job_nonce = options.job_nonce;
  context.source = server.get();
  ASSIGN_OR_RETURN(server->context_, Context::Create(std::move(context)));
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

CopyServer::~CopyServer() {
  if (thread_.joinable()) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
  }
  context_.reset();
}

void CopyServer::Register(WorkerIncarnation incarnation, int state_fd) {
  UniqueFd own(fcntl(state_fd, F_DUPFD_CLOEXEC, 3));
  MutexLock lock(mutex_);
  copies_[incarnation].state = std::move(own);
}

void CopyServer::Serve(WorkerIncarnation incarnation, const HeldPlace& place) {
  {
    MutexLock lock(mutex_);
    const auto found = copies_.find(incarnation);
    if (found == copies_.end()) {
      return;
    }
    Copy& copy = found->second;
    if (copy.place && copy.place->held == place.held && copy.place->offset == place.offset) {
      return;
    }
    copy.place = place;
    copy.mapping.reset();
  }
  Wake();
}

void CopyServer::Forget(WorkerIncarnation incarnation) {
  {
    MutexLock lock(mutex_);
    const auto found = copies_.find(incarnation);
    if (found == copies_.end()) {
      return;
    }
    forgotten_.push_back(std::move(found->second));
    copies_.erase(found);
  }
  Wake();
}

StateSource::Answer CopyServer::Offer(const GenerationId& generation, WorkerIncarnation whose) {
  MutexLock lock(mutex_);
  const auto found = copies_.find(whose);
  if (found == copies_.end()) {
    return {Verdict::kNever, {}};
  }
  Copy& copy = found->second;
  if (!copy.place) {
    return {Verdict::kLater, {}};  // lives; a server that named it as a copy expects its death
  }
  if (!copy.place->held.valid()) {
    return {Verdict::kNever, {}};
  }
  if (!copy.mapping) {
    auto mapping = Mapping::Map(copy.state.get(), *copy.place);
    if (!mapping.ok()) {
      LogWarning("copy of worker ", ToString(whose), ": ", mapping.error().message());
      return {Verdict::kNever, {}};
    }
    copy.mapping = std::move(*mapping);
  }
  in_use_.emplace(generation, copy.mapping);
  return {Verdict::kNow, copy.mapping->view()};
}

// Whose transfer ended is not told, only for which asker: the mappings of a generation are let go
// together when the last of its transfers has ended.
void CopyServer::Done(const GenerationId& generation, WorkerIncarnation) {
  const auto [first, last] = in_use_.equal_range(generation);
  if (std::distance(first, last) == ++ended_[generation]) {
    in_use_.erase(first, last);
    ended_.erase(generation);
  }
}

void CopyServer::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void CopyServer::Run() {
  pthread_setname_np(pthread_self(), "el-copies");
  for (;;) {
    int timeout_ms = -1;
    if (const auto deadline = context_->NextDeadline()) {
      const Duration left = std::max(*deadline - Now(), Duration(0));
      timeout_ms = static_cast<int>(std::min(ToMilliseconds(left) + 1, 1e6));
    }
    pollfd polls[] = {{wake_.get(), POLLIN, 0}, {context_->event_fd(), POLLIN, 0}};
    poll(polls, 2, timeout_ms);
    uint64_t count = 0;
    const bool woken = read(wake_.get(), &count, sizeof count) == sizeof count;
    std::vector<Copy> forgotten;  // freed here, without the lock
    {
      MutexLock lock(mutex_);
      if (stopping_) {
        return;
      }
      forgotten.swap(forgotten_);
    }
    if (woken) {
      context_->RetryRequests();
    }
    context_->Progress();
  }
}

}  // namespace elastic::internal
