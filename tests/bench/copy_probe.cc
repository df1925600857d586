// How long it takes when several processes copy their bytes at once, which is what a restore of
// state that is updated in place can't do without.
//   copy_probe PROCESSES BYTES ROUNDS
// Prints one line per round: nanoseconds from the start until the last process has copied. All
// memory has been touched before.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "tests/support/event_log.h"

namespace elastic::internal::testing {
namespace {

constexpr int kProcessesMax = 64;

struct Shared {
  pthread_barrier_t barrier;
  int64_t ended[kProcessesMax];
};

std::byte* Map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("copy_probe: mmap");
    std::exit(1);
  }
  return static_cast<std::byte*>(memory);
}

void Copy(Shared& shared, int number, size_t bytes, int rounds) {
  std::byte* from = Map(bytes);
  std::byte* to = Map(bytes);
  std::memset(from, 1, bytes);
  std::memset(to, 2, bytes);
  for (int round = 0; round < rounds; ++round) {
    pthread_barrier_wait(&shared.barrier);
    std::memcpy(to, from, bytes);
    shared.ended[number] = BootNanoseconds();
    pthread_barrier_wait(&shared.barrier);
  }
}

int64_t Last(const Shared& shared, int processes) {
  int64_t last = 0;
  for (int i = 0; i < processes; ++i) {
    last = shared.ended[i] > last ? shared.ended[i] : last;
  }
  return last;
}

int Run(int processes, size_t bytes, int rounds) {
  auto& shared = *new (Map(sizeof(Shared))) Shared{};
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes, static_cast<unsigned>(processes) + 1);
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() < 0) {
      std::perror("copy_probe: fork");
      _exit(1);  // the others wait at the barrier and are ended with this process
    }
    if (children.back() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Copy(shared, i, bytes, rounds);
      _exit(0);
    }
  }
  for (int round = 0; round < rounds; ++round) {
    const int64_t begin = BootNanoseconds();
    pthread_barrier_wait(&shared.barrier);  // all copy from here
    pthread_barrier_wait(&shared.barrier);
    std::printf("%ld\n", Last(shared, processes) - begin);
  }
  for (const pid_t child : children) {
    waitpid(child, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  const int processes = argc == 4 ? std::atoi(argv[1]) : 0;
  const auto bytes = static_cast<size_t>(argc == 4 ? std::atoll(argv[2]) : 0);
  const int rounds = argc == 4 ? std::atoi(argv[3]) : 0;
  if (processes < 1 || processes > kProcessesMax || bytes < 1 || rounds < 1) {
    std::fprintf(stderr, "copy_probe PROCESSES (1 to %d) BYTES ROUNDS\n", kProcessesMax);
    return 64;
  }
  return Run(processes, bytes, rounds);
}
