#include "worker_runtime/link/worker_page.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstring>

#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

static_assert(sizeof(pthread_mutex_t) <= sizeof(local::ControlPage::owner_mutex));

pthread_mutex_t* OwnerMutex(local::ControlPage* page) {
  return reinterpret_cast<pthread_mutex_t*>(page->owner_mutex);
}

}  // namespace

StatusOr<std::unique_ptr<WorkerPage>> WorkerPage::Map(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return ErrnoError(errno, "fstat of the control page");
  }
  if (static_cast<size_t>(info.st_size) < local::kControlPageBytes) {
    return InvalidArgumentError(
        StrCat("the control page has ", info.st_size, " bytes, need ", local::kControlPageBytes));
  }
  void* memory = mmap(nullptr, local::kControlPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return ErrnoError(errno, "mmap of the control page");
  }
  std::unique_ptr<WorkerPage> page(new WorkerPage(static_cast<local::ControlPage*>(memory)));
  if (page->page_->magic != local::kControlPageMagic ||
      page->page_->version != local::kControlPageVersion) {
    return InvalidArgumentError(StrCat("the control page has version ", page->page_->version,
                                       ", this library knows ", local::kControlPageVersion,
                                       ": agent and program need the same release"));
  }
  return page;
}

WorkerPage::~WorkerPage() { munmap(page_, local::kControlPageBytes); }

CommitWord WorkerPage::word() const {
  return CommitWord::Unpack(page_->commit_word.load(std::memory_order_acquire));
}

GenerationId WorkerPage::IdentityOf(CommitWord word) const {
  const auto& slot = page_->identity[word.generation.value % local::kIdentitySlots];
  if (word.generation.value == 0 ||
      slot.number.load(std::memory_order_acquire) != word.generation.value) {
    return {};
  }
  return {.server = ServerIncarnation{slot.server.load(std::memory_order_relaxed)},
          .number = word.generation,
          .roster_digest = slot.digest.load(std::memory_order_relaxed)};
}

void WorkerPage::CompareExchange(CommitWord from, CommitWord to, const GenerationId& generation) {
  if (from.generation != to.generation) {
    auto& slot = page_->identity[to.generation.value % local::kIdentitySlots];
    slot.server.store(generation.server.value, std::memory_order_relaxed);
    slot.digest.store(generation.roster_digest, std::memory_order_relaxed);
    slot.number.store(generation.number.value, std::memory_order_release);
  }
  uint64_t expected = from.Pack();
  page_->commit_word.compare_exchange_strong(expected, to.Pack(), std::memory_order_acq_rel);
}

Held WorkerPage::held() const {
  const auto& slot = page_->held[page_->held_index.load(std::memory_order_acquire) % 2];
  return {.version = {GenerationNumber{slot.generation.load(std::memory_order_relaxed)},
                      slot.commits.load(std::memory_order_relaxed)},
          .digest = slot.digest.load(std::memory_order_relaxed),
          .step = slot.step.load(std::memory_order_relaxed)};
}

void WorkerPage::PublishHeld(const Held& held, Place place) {
  const uint32_t index = 1 - page_->held_index.load(std::memory_order_relaxed) % 2;
  auto& slot = page_->held[index];
  slot.generation.store(held.version.generation.value, std::memory_order_relaxed);
  slot.commits.store(held.version.commits, std::memory_order_relaxed);
  slot.digest.store(held.digest, std::memory_order_relaxed);
  slot.step.store(held.step, std::memory_order_relaxed);
  slot.offset.store(place.offset, std::memory_order_relaxed);
  slot.bytes.store(place.bytes, std::memory_order_relaxed);
  page_->held_index.store(index, std::memory_order_release);
}

Status WorkerPage::LockOwner() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  int error = pthread_mutex_init(OwnerMutex(page_), &attributes);
  pthread_mutexattr_destroy(&attributes);
  if (error == 0) {
    error = pthread_mutex_lock(OwnerMutex(page_));
  }
  if (error != 0) {
    return ErrnoError(error, "locking the owner mutex of the control page");
  }
  page_->owner_ready.store(1, std::memory_order_release);
  return OkStatus();
}

void WorkerPage::ReleaseOwner() { pthread_mutex_unlock(OwnerMutex(page_)); }

void WorkerPage::Beat() { page_->beats.fetch_add(1, std::memory_order_release); }

}  // namespace elastic::internal
