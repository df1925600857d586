// The side of a rank: what runs in the process that elastic-run started, before main.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "worker_runtime/testing/program_image.h"

// The linker's --wrap=main, which ElasticRun::testing brings: the start code calls __wrap_main, and
// __real_main is the program's.
extern "C" int __real_main(int argc, char** argv, char** environment);  // NOLINT
extern "C" int __wrap_main(int argc, char** argv, char** environment);  // NOLINT

namespace elastic::testing {

void Rank::Say(std::string_view text) const {
  std::string line = std::to_string(slot_) + ' ' + incarnation_ + ' ';
  for (const char c : text.substr(0, kSayBytesMax)) {
    line += c == '\n' ? ' ' : c;
  }
  line += '\n';
  // One write of less than PIPE_BUF bytes is taken whole. The test may be gone: then nobody asks.
  while (write(pipe_, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

struct RankProcess {
  static int Run(const char* function, int argc, char** argv) {
    const char* pipe = std::getenv(kPipeVariable);
    const char* slot = std::getenv("ELASTIC_LOCAL_RANK");
    const char* worker = std::getenv("ELASTIC_WORKER");
    if (pipe == nullptr || slot == nullptr || worker == nullptr) {
      std::fprintf(stderr, "%s is set outside of a job: unset it\n", kFunctionVariable);
      return 2;
    }
    Rank rank;
    rank.slot_ = std::atoi(slot);
    const std::string_view mark(worker);  // JOB/INCARNATION
    rank.incarnation_ = mark.substr(mark.rfind('/') + 1);
    rank.pipe_ = open(pipe, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (rank.pipe_ < 0) {
      std::fprintf(stderr, "the test that started this rank is gone (%s)\n", pipe);
      return 2;
    }
    fcntl(rank.pipe_, F_SETFL, 0);
    rank.arguments_.assign(argv + 1, argv + argc);
    const auto offset = static_cast<uintptr_t>(std::strtoull(function, nullptr, 16));
    // A program that this rank starts is no rank.
    unsetenv(kFunctionVariable);
    unsetenv(kPipeVariable);
    rank.Say(kHello + std::to_string(getpid()));

    Runtime runtime;
    if (const Status status = runtime.Init(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return 2;
    }
    rank.runtime_ = &runtime;
    const auto run = reinterpret_cast<RankFunction>(Image().base + offset);  // NOLINT
    return run(rank);
  }
};

}  // namespace elastic::testing

int __wrap_main(int argc, char** argv, char** environment) {  // NOLINT
  if (const char* function = std::getenv(elastic::testing::kFunctionVariable)) {
    return elastic::testing::RankProcess::Run(function, argc, argv);
  }
  return __real_main(argc, argv, environment);
}
