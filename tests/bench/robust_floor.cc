// The floor under detection: SIGKILL of a process that holds a robust futex, until a waiter in
// another process wakes. Nothing that detects a death on this host can be faster than that.
// Prints one line per round: nanoseconds from just before kill() to the wake. Two busy processes
// stand for the load of an allreduce.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/support/event_log.h"

namespace elastic::internal::testing {
namespace {

struct Shared {
  pthread_mutex_t mutex;
  std::atomic<int> held;
  std::atomic<int64_t> woke;
};

Shared* MakeShared() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  auto* shared = new (memory) Shared{};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->mutex, &attributes);
  return shared;
}

[[noreturn]] void Hold(Shared& shared) {
  pthread_mutex_lock(&shared.mutex);
  shared.held.store(1);
  for (;;) {
    pause();
  }
}

[[noreturn]] void Watch(Shared& shared) {
  pthread_mutex_lock(&shared.mutex);  // EOWNERDEAD at the owner's death
  shared.woke.store(BootNanoseconds());
  _exit(0);
}

[[noreturn]] void Spin() {
  std::atomic<uint64_t> turns{0};
  for (;;) {
    turns.fetch_add(1, std::memory_order_relaxed);
  }
}

// The child ends with this program, however that ends. No -1 comes out of here: as a pid to kill()
// it would mean every process of this user.
template <class Body>
pid_t Fork(Body body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("robust_floor: fork (the limit of processes is `ulimit -u`)");
    std::exit(1);
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(1);
    }
    body();
    _exit(0);
  }
  return pid;
}

int64_t Round() {
  Shared& shared = *MakeShared();
  const pid_t holder = Fork([&shared] { Hold(shared); });
  while (shared.held.load() == 0) {
    sched_yield();
  }
  const pid_t watcher = Fork([&shared] { Watch(shared); });
  // Until the watcher sleeps on the futex: its waiters bit is then set.
  const auto* word = reinterpret_cast<const std::atomic<uint32_t>*>(&shared.mutex);
  while ((word->load() & 0x80000000u) == 0) {
    sched_yield();
  }
  const int64_t killed = BootNanoseconds();
  kill(holder, SIGKILL);
  waitpid(watcher, nullptr, 0);
  waitpid(holder, nullptr, 0);
  const int64_t took = shared.woke.load() - killed;
  munmap(&shared, sizeof(Shared));
  return took;
}

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  const std::vector<pid_t> load = {Fork(Spin), Fork(Spin)};
  for (int i = 0; i < rounds; ++i) {
    std::printf("%ld\n", Round());
  }
  for (const pid_t pid : load) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return 0;
}
