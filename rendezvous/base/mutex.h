#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define ELASTIC_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define ELASTIC_THREAD_ATTRIBUTE(x)
#endif
// Abseil has a macro of this name with the same meaning.
#undef GUARDED_BY
#define GUARDED_BY(x) ELASTIC_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES_LOCK(x) ELASTIC_THREAD_ATTRIBUTE(requires_capability(x))

namespace elastic::internal {

// std::mutex with clang's thread-safety attributes; never absl::Mutex (style rule 6).
class ELASTIC_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() ELASTIC_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() ELASTIC_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ELASTIC_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ELASTIC_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() ELASTIC_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with `Mutex` held: `condition.wait(mutex)`.
using ConditionVariable = std::condition_variable_any;

}  // namespace elastic::internal
