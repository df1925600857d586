#include "launcher/agent/futex_watch.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "launcher/agent/agent_limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

bool FutexWatch::Supported() {
  // No words at all: EINVAL where the call exists. Anything else is ENOSYS or a filter's answer, as
  // EPERM in a container with an older seccomp profile.
  return syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) != 0 && errno == EINVAL;
}

FutexWatch::FutexWatch(Ended ended) : ended_(std::move(ended)), thread_([this] { Run(); }) {}

FutexWatch::~FutexWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

bool FutexWatch::Add(WorkerIncarnation incarnation, uint32_t* word) {
  {
    MutexLock lock(mutex_);
    if (watched_.size() >= static_cast<size_t>(kFutexWordsMax)) {
      return false;
    }
    watched_.push_back({incarnation, word});
  }
  Wake();
  return true;
}

void FutexWatch::Remove(WorkerIncarnation incarnation) {
  {
    MutexLock lock(mutex_);
    if (std::erase_if(watched_, [&](const Watched& watched) {
          return watched.incarnation == incarnation;
        }) == 0) {
      return;
    }
  }
  // The word is unmapped next: wait until the thread does not look at it any more.
  const uint32_t wanted = changes_.load() + 1;
  Wake();
  for (uint32_t taken = taken_.load(); static_cast<int32_t>(taken - wanted) < 0;
       taken = taken_.load()) {
    taken_.wait(taken);
  }
}

void FutexWatch::Wake() {
  changes_.fetch_add(1);
  syscall(SYS_futex, &changes_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void FutexWatch::Check(std::vector<std::pair<uint32_t*, uint32_t>>& waits) {
  std::vector<std::pair<WorkerIncarnation, OwnerEnd>> ends;
  {
    MutexLock lock(mutex_);
    std::erase_if(watched_, [&](const Watched& watched) {
      std::atomic_ref<uint32_t> word(*watched.word);
      // Without this bit the kernel marks the word but wakes nobody.
      const uint32_t value = word.fetch_or(FUTEX_WAITERS) | FUTEX_WAITERS;
      const bool died = (value & FUTEX_OWNER_DIED) != 0;
      const bool ended = died || (value & FUTEX_TID_MASK) == 0;
      if (ended) {
        ends.emplace_back(watched.incarnation, died ? OwnerEnd::kDied : OwnerEnd::kLeft);
      } else {
        waits.emplace_back(watched.word, value);
      }
      return ended;
    });
  }
  for (const auto& [incarnation, how] : ends) {
    ended_(incarnation, how);
  }
}

// No memory for the wait, or a call that is forbidden after all: then the words are looked at as
// often as workers beat.
void FutexWatch::WaitWithout(uint32_t changes, int error_number) {
  if (!std::exchange(told_failure_, true)) {
    LogWarning("futex_waitv: ", std::strerror(error_number), "; deaths are seen up to ",
               FormatDuration(kWorkerBeatInterval), " later");
  }
  const timespec limit{0, kWorkerBeatInterval.count()};
  syscall(SYS_futex, &changes_, FUTEX_WAIT_PRIVATE, changes, &limit, nullptr, 0);
}

void FutexWatch::Run() {
  pthread_setname_np(pthread_self(), "el-futex");
  // On the recovery path; a kernel without short slices is only slower.
  static_cast<void>(RequestShortSlice(SliceInheritance::kResetOnFork));
  std::vector<std::pair<uint32_t*, uint32_t>> waits;
  std::vector<futex_waitv> vector;
  for (;;) {
    const uint32_t changes = changes_.load();
    waits.clear();
    Check(waits);
    taken_.store(changes);
    taken_.notify_all();
    {
      MutexLock lock(mutex_);
      if (stopping_) {
        return;
      }
    }
    vector.clear();
    vector.push_back(
        {changes, reinterpret_cast<uintptr_t>(&changes_), FUTEX_32 | FUTEX_PRIVATE_FLAG, 0});
    for (const auto& [word, value] : waits) {
      vector.push_back({value, reinterpret_cast<uintptr_t>(word), FUTEX_32, 0});
    }
    // Any return, EAGAIN for a word that has changed already included, means: look again.
    const long woken = syscall(SYS_futex_waitv, vector.data(), vector.size(), 0, nullptr, 0);
    if (woken < 0 && errno != EAGAIN && errno != EINTR) {
      WaitWithout(changes, errno);
    }
  }
}

}  // namespace elastic::internal
