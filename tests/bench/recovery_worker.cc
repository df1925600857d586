// The worker of the recovery benchmark: allreduces in a loop, so that a kill hits one in its
// middle, and after each loss the stations of the recovery in one clock (CLOCK_BOOTTIME).
//
// Each line of its log: `recovered generation rank size fenced bell roster edges restored first`,
// where `first` is when a 4-byte allreduce over the new edges was complete on this rank.

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/event_log.h"
#include "tests/support/flags.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {
namespace {

class Bench {
 public:
  explicit Bench(Flags flags)
      : log_(flags.Text("--log", "")),
        state_bytes_(static_cast<size_t>(flags.Number("--state-bytes", 1 << 20))),
        payload_(static_cast<size_t>(flags.Number("--reduce-bytes", 64 << 20)) / sizeof(float)) {
    flags.Check();
  }

  int Main() {
    if (Status status = runtime_.Init(); !status.ok()) {
      std::fprintf(stderr, "recovery_worker: %s\n", status.message().c_str());
      return 2;
    }
    if (elastic_state_create(state_bytes_) != ELASTIC_OK) {
      std::fprintf(stderr, "recovery_worker: %s\n", elastic_last_error());
      return 2;
    }
    const elastic_status status = elastic_run(
        [](void* self) { return static_cast<elastic_status>(static_cast<Bench*>(self)->Train()); },
        this);
    return status == ELASTIC_OK ? 0 : 1;
  }

 private:
  // Runs until it is killed or its generation is over. Newcomers begin here where the others come
  // out of a commit, so all begin a generation with the same small collective.
  int Train() {
    uint32_t begun = 0;
    for (uint64_t step = elastic_committed_step() + 1;; ++step) {
      Status status;
      if (begun != runtime_.generation()) {
        begun = runtime_.generation();
        float one = 1;
        status = runtime_.AllReduce(&one, 1);
        LogRecovery(BootNanoseconds(), status.ok());
      }
      if (status.ok()) {
        status = runtime_.AllReduce(payload_.data(), payload_.size());
      }
      if (status.ok()) {
        status = runtime_.Commit(step);
      }
      if (!status.ok()) {
        return static_cast<int>(status.code());
      }
    }
  }

  void LogRecovery(int64_t first, bool complete) {
    if (!complete) {
      return;
    }
    elastic_recovery_stamps stamps{};
    stamps.struct_size = sizeof stamps;
    if (elastic_get_recovery_stamps(&stamps) != ELASTIC_OK) {
      std::fprintf(stderr, "recovery_worker: %s\n", elastic_last_error());
      return;
    }
    std::string line = "recovered " + std::to_string(runtime_.generation()) + " " +
                       std::to_string(runtime_.rank()) + " " + std::to_string(runtime_.size());
    for (const int64_t at : {stamps.fenced_ns, stamps.bell_heard_ns, stamps.roster_came_ns,
                             stamps.edges_up_ns, stamps.restored_ns, first}) {
      line += " " + std::to_string(at);
    }
    log_.Write(line);
  }

  EventLog log_;
  size_t state_bytes_;
  std::vector<float> payload_;
  Runtime runtime_;
};

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  Bench bench{Flags(argc, argv)};
  return bench.Main();
}
