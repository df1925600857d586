// The worker of the recovery benchmark: steps of one large allreduce, a new state and a commit, so
// that a kill hits an allreduce in its middle; after each loss the stations of the recovery, in one
// clock (CLOCK_BOOTTIME).
//
// Lines of its log:
//   recovered generation rank size step fenced bell roster edges restored first
//   step      generation rank size step begun ended
// `step` of the first is the one that the state is from; `first` is when a 4-byte allreduce over
// the new edges was complete on this rank. A restored state or a sum that is wrong ends the
// process.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/support/event_log.h"
#include "tests/support/flags.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {
namespace {

constexpr int kWrong = 70;  // exit code: the runtime gave this worker wrong data
// A look at the state: one word in so many. A whole pass would keep the cores from the other ranks,
// whose first collective is being timed.
constexpr size_t kLookWords = (64 << 10) / sizeof(uint64_t);

class Bench {
 public:
  explicit Bench(Flags flags)
      : log_(flags.Text("--log", "")),
        state_bytes_(static_cast<size_t>(flags.Number("--state-bytes", 1 << 20))),
        payload_(static_cast<size_t>(flags.Number("--reduce-bytes", 64 << 20)) / sizeof(float)),
        in_place_(flags.Text("--state", "two-buffer") == "in-place"),
        ballast_bytes_(static_cast<size_t>(flags.Number("--ballast-bytes", 0))),
        ballast_slot_(flags.Text("--ballast-slot", "")) {
    flags.Check();
  }

  int Main() {
    // Memory that the process has besides: the kernel frees it while others want to know.
    const char* slot = std::getenv("ELASTIC_LOCAL_RANK");
    if (slot != nullptr && ballast_slot_ == slot) {
      ballast_.assign(ballast_bytes_, '\1');
    }
    if (Status status = runtime_.Init(); !status.ok()) {
      std::fprintf(stderr, "recovery_worker: %s\n", status.message().c_str());
      return 2;
    }
    if (CreateState() != ELASTIC_OK) {
      std::fprintf(stderr, "recovery_worker: %s\n", elastic_last_error());
      return 2;
    }
    const elastic_status status = elastic_run(
        [](void* self) { return static_cast<elastic_status>(static_cast<Bench*>(self)->Train()); },
        this);
    return status == ELASTIC_OK ? 0 : 1;
  }

 private:
  elastic_status CreateState() {
    if (!in_place_) {
      return elastic_state_create(state_bytes_);
    }
    own_.resize(state_bytes_ / sizeof(uint64_t));
    return elastic_register("state", own_.data(), own_.size() * sizeof(uint64_t), nullptr);
  }

  // Runs until it is killed or its generation is over. Newcomers begin here where the others come
  // out of a commit, so all begin a generation with the same small collective.
  int Train() {
    uint32_t begun = 0;
    for (uint64_t step = elastic_committed_step() + 1;; ++step) {
      Status status;
      if (begun != runtime_.generation()) {
        begun = runtime_.generation();
        status = BeginGeneration(step - 1);
      }
      if (status.ok()) {
        status = Step(step);
      }
      if (!status.ok()) {
        return static_cast<int>(status.code());
      }
    }
  }

  Status BeginGeneration(uint64_t step) {
    float ones = 1;
    ELASTIC_RETURN_IF_ERROR(runtime_.AllReduce(&ones, 1));
    LogRecovery(step, BootNanoseconds());
    if (ones != static_cast<float>(runtime_.size())) {
      Fail("the first allreduce has another sum than its size");
    }
    const std::span<const uint64_t> state = in_place_ ? own_ : Words(elastic_state_current());
    for (size_t i = 0; i < state.size(); i += kLookWords) {
      if (state[i] != step) {
        Fail("the state that was restored is not the committed one");
      }
    }
    return {};
  }

  Status Step(uint64_t step) {
    const int64_t begin = BootNanoseconds();
    const std::string where = Where(step);  // the commit may lead into another generation
    const std::span<uint64_t> state = in_place_ ? std::span(own_) : Words(elastic_state_next());
    for (size_t i = 0; i < state.size(); i += kLookWords) {
      state[i] = step;  // a kill in the allreduce leaves state behind that isn't committed
    }
    ELASTIC_RETURN_IF_ERROR(runtime_.AllReduce(payload_.data(), payload_.size()));
    std::ranges::fill(state, step);
    ELASTIC_RETURN_IF_ERROR(runtime_.Commit(step));
    log_.Write("step " + where + " " + std::to_string(begin) + " " +
               std::to_string(BootNanoseconds()));
    return {};
  }

  std::span<uint64_t> Words(void* state) const {
    return {static_cast<uint64_t*>(state), state_bytes_ / sizeof(uint64_t)};
  }

  std::string Where(uint64_t step) const {
    return std::to_string(runtime_.generation()) + " " + std::to_string(runtime_.rank()) + " " +
           std::to_string(runtime_.size()) + " " + std::to_string(step);
  }

  void LogRecovery(uint64_t step, int64_t first) {
    elastic_recovery_stamps stamps{};
    stamps.struct_size = sizeof stamps;
    if (elastic_get_recovery_stamps(&stamps) != ELASTIC_OK) {
      Fail(elastic_last_error());
    }
    std::string line = "recovered " + Where(step);
    for (const int64_t at : {stamps.fenced_ns, stamps.bell_heard_ns, stamps.roster_came_ns,
                             stamps.edges_up_ns, stamps.restored_ns, first}) {
      line += " " + std::to_string(at);
    }
    log_.Write(line);
  }

  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "recovery_worker: %s\n", what);
    std::_Exit(kWrong);
  }

  EventLog log_;
  size_t state_bytes_;
  std::vector<float> payload_;
  bool in_place_;
  std::vector<uint64_t> own_;  // the state, if in place
  size_t ballast_bytes_;
  std::string ballast_slot_;
  std::vector<char> ballast_;
  Runtime runtime_;
};

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  Bench bench{Flags(argc, argv)};
  return bench.Main();
}
