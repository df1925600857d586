#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "rendezvous/base/ids.h"
#include "rendezvous/base/mutex.h"

namespace elastic::internal {

// How the owner of a mutex let go of it: by the end of its thread, or on purpose.
enum class OwnerEnd : uint8_t { kDied, kLeft };

// Hears of deaths by robust futex: a thread that waits on the owner mutexes of many workers. The
// kernel marks such a word and wakes one waiter while the owner's memory is still being torn down,
// long before a wait status exists. Not the pidfd: it fires only after the whole address space is
// gone, which takes longer the more memory a worker has.
// Source: futex(2), futex_waitv (Linux 5.16), Documentation/locking/robust-futexes.rst.
class FutexWatch {
 public:
  // Called from the watch's thread, at most once per incarnation; it must return quickly. A call
  // that was under way may still come after Remove.
  using Ended = std::function<void(WorkerIncarnation, OwnerEnd)>;
  explicit FutexWatch(Ended ended);
  ~FutexWatch();
  FutexWatch(const FutexWatch&) = delete;
  FutexWatch& operator=(const FutexWatch&) = delete;

  // False where the kernel has no futex_waitv or does not allow it: deaths are then seen by exits
  // only, which are later by what the tearing down of the memory takes.
  static bool Supported();

  // False when kFutexWordsMax words are watched. `word` must stay mapped until Remove has returned.
  bool Add(WorkerIncarnation incarnation, uint32_t* word);
  // Returns once the thread has let go of the word. Idempotent.
  void Remove(WorkerIncarnation incarnation);

 private:
  struct Watched {
    WorkerIncarnation incarnation;
    uint32_t* word = nullptr;
  };

  void Run();
  // Reports and drops the words whose owner has ended; tells the values to wait for.
  void Check(std::vector<std::pair<uint32_t*, uint32_t>>& waits);
  void WaitWithout(uint32_t changes, int error_number);
  void Wake();

  const Ended ended_;
  // Grows when the list has changed; the thread waits on it together with the workers' words.
  std::atomic<uint32_t> changes_{0};
  bool told_failure_ = false;  // of the thread alone
  // The value of changes_ whose list the thread has taken over.
  std::atomic<uint32_t> taken_{0};

  Mutex mutex_;
  std::vector<Watched> watched_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace elastic::internal
