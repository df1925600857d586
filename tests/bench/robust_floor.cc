// The floor under a recovery: SIGKILL of a process that holds a robust futex, until a waiter in
// another process wakes, which then wakes the next process of a chain, and so on: one wake-up for
// each message that a recovery can't do without, and nothing else. Nothing that detects a death on
// this host, and tells others, can be faster than that.
//   robust_floor HOPS
// For each line of its input one round; prints nanoseconds from just before kill() to the futex's
// waiter, and to the end of the chain. Load and pace are those of whoever calls it.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "rendezvous/base/sched_slice.h"
#include "tests/support/event_log.h"

namespace elastic::internal::testing {
namespace {

constexpr int kHopsMax = 64;

struct Shared {
  pthread_mutex_t mutex;
  std::atomic<int> held;
  std::atomic<int64_t> woke;
  std::atomic<int64_t> ended;
};

Shared* MakeShared() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return new (memory) Shared{};
}

void MakeMutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
}

// A message of one byte to the process that sleeps at the other end.
struct Link {
  int ends[2];
  void Send() const {
    const char byte = 1;
    if (write(ends[0], &byte, 1) != 1) {
      _exit(1);
    }
  }
  void Await() const {
    char byte = 0;
    if (read(ends[1], &byte, 1) != 1) {
      _exit(1);
    }
  }
};

Link MakeLink() {
  Link link{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link.ends) != 0) {
    std::perror("socketpair");
    std::exit(1);
  }
  return link;
}

[[noreturn]] void Hold(Shared& shared) {
  pthread_mutex_lock(&shared.mutex);
  shared.held.store(1);
  for (;;) {
    pause();
  }
}

[[noreturn]] void Watch(Shared& shared, const Link& next) {
  pthread_mutex_lock(&shared.mutex);  // EOWNERDEAD at the owner's death
  shared.woke.store(BootNanoseconds());
  next.Send();
  _exit(0);
}

[[noreturn]] void PassOn(Shared& shared, const Link& before, const Link& next) {
  for (;;) {
    before.Await();
    shared.ended.store(BootNanoseconds());  // the last one's stays
    next.Send();
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

void Round(Shared& shared, const Link& first, const Link& last) {
  MakeMutex(shared.mutex);
  shared.held.store(0);
  const pid_t holder = Fork([&] { Hold(shared); });
  while (shared.held.load() == 0) {
    sched_yield();
  }
  const pid_t watcher = Fork([&] { Watch(shared, first); });
  // Until the watcher sleeps on the futex: its waiters bit is then set.
  const auto* word = reinterpret_cast<const std::atomic<uint32_t>*>(&shared.mutex);
  while ((word->load() & 0x80000000u) == 0) {
    sched_yield();
  }
  const int64_t killed = BootNanoseconds();
  kill(holder, SIGKILL);
  last.Await();
  std::printf("%ld %ld\n", shared.woke.load() - killed, shared.ended.load() - killed);
  std::fflush(stdout);
  waitpid(watcher, nullptr, 0);
  waitpid(holder, nullptr, 0);
}

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  const int hops = argc == 2 ? std::atoi(argv[1]) : 0;
  if (hops < 1 || hops > kHopsMax) {
    std::fprintf(stderr, "robust_floor HOPS (1 to %d)\n", kHopsMax);
    return 64;
  }
  // As the threads on the path of a recovery; without effect on older kernels.
  static_cast<void>(
      elastic::internal::RequestShortSlice(elastic::internal::SliceInheritance::kInherited));
  Shared& shared = *MakeShared();
  std::vector<Link> links = {MakeLink()};
  std::vector<pid_t> chain;
  for (int i = 0; i < hops; ++i) {
    links.push_back(MakeLink());
    chain.push_back(Fork([&] { PassOn(shared, links[links.size() - 2], links.back()); }));
  }
  for (std::string line; std::getline(std::cin, line);) {
    Round(shared, links.front(), links.back());
  }
  for (const pid_t pid : chain) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return 0;
}
