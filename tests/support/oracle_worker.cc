// The oracle worker: a training program whose result shows any sample that was lost or counted
// twice. Each step adds (id + 1) of every sample of the global batch to a weight, through one
// allreduce; before that it logs the ids that it contributes. tests/support/oracle.py replays the
// logs against the sampler's order.
//
// The ids are logged before the allreduce because from then on the others can commit the step
// without this worker, which may be killed before it logs another word. A proposal that was never
// committed is told apart by generation_of_step in the state.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/base/rng.h"
#include "tests/support/event_log.h"
#include "tests/support/flags.h"
#include "tests/support/oracle_memory.h"
#include "tests/support/oracle_state.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {
namespace {

struct Options {
  explicit Options(Flags flags)
      : log(flags.Text("--log", "")),
        steps(static_cast<uint64_t>(flags.Number("--steps", 200))),
        samples(static_cast<uint64_t>(flags.Number("--samples", 1000))),
        batch(static_cast<uint64_t>(flags.Number("--batch", 48))),
        seed(static_cast<uint64_t>(flags.Number("--seed", 1))),
        step_time(flags.Number("--step-us", 2000)),
        jitter(static_cast<uint64_t>(flags.Number("--jitter-us", 0))),
        hold_at(flags.Number("--hold-at", -1)),
        hold_slot(static_cast<int>(flags.Number("--hold-slot", 0))),
        hold(flags.Number("--hold-us", 0)),
        state_bytes(static_cast<size_t>(flags.Number("--state-bytes", 65536))),
        in_place(flags.Second("--state", "two-buffer", "in-place")),
        reduce_bytes(static_cast<size_t>(flags.Number("--reduce-bytes", 0))),
        start_delay(flags.Number("--start-us", 0)),
        newcomer_delay(flags.Number("--newcomer-us", 0)),
        leave_at(flags.Number("--leave-at", -1)),
        leave_slot(static_cast<int>(flags.Number("--leave-slot", 0))),
        fail_at(flags.Number("--fail-at", -1)),
        fail_slot(static_cast<int>(flags.Number("--fail-slot", 0))),
        fail_code(static_cast<int>(flags.Number("--fail-code", 1))),
        last_line(flags.Number("--last-line-us", -1)),
        linger(flags.Number("--linger-us", 0)),
        linger_rank(static_cast<int>(flags.Number("--linger-rank", -1))),
        grandchild(flags.Number("--grandchild", 0) != 0),
        uneven_at(flags.Number("--uneven-at", -1)),
        uneven_slot(static_cast<int>(flags.Number("--uneven-slot", 1))),
        uneven(flags.Text("--uneven", "label")),
        stop_at(flags.Number("--stop-at", -1)),
        stop_slot(static_cast<int>(flags.Number("--stop-slot", 1))),
        on_term(flags.Text("--on-term", "default")) {
    flags.Check();
    state_bytes = std::max(state_bytes, sizeof(OracleState));
  }

  std::string log;  // folder
  uint64_t steps, samples, batch, seed;
  std::chrono::microseconds step_time;
  uint64_t jitter;  // up to so many microseconds more in each step, other ones in each process
  int64_t hold_at;  // step in which slot hold_slot stays away for `hold`, as in a validation
  int hold_slot;
  std::chrono::microseconds hold;
  size_t state_bytes;
  bool in_place;                             // the state lies in this process's own memory
  size_t reduce_bytes;                       // of an extra f32 allreduce in each step; 0: none
  std::chrono::microseconds start_delay;     // before anything of the runtime
  std::chrono::microseconds newcomer_delay;  // before joining, once a file says training began
  int64_t leave_at;                          // step at which slot leave_slot exits 0 unasked
  int leave_slot;
  int64_t fail_at;  // step at which the function of slot fail_slot returns an error
  int fail_slot;
  int fail_code;                        // exit code after an error
  std::chrono::microseconds last_line;  // after an error: shut down, wait, print a line; -1: not
  std::chrono::microseconds linger;     // before linger_rank returns from its function
  int linger_rank;
  bool grandchild;    // leaves a process with a session of its own behind
  int64_t uneven_at;  // step in which slot uneven_slot does what the others don't:
  int uneven_slot;
  std::string uneven;  // label (commits with another step), twice (commits again), return
  int64_t stop_at;     // step in which slot stop_slot asks all ranks to stop
  int stop_slot;
  std::string on_term;  // default, exit (logs it, exits 0), ignore (logs it), return (an error),
                        // stop (logs it; at the step that all ranks agree on)
};

EventLog* g_log = nullptr;  // for the signal handler

void OnTerm(int) {
  g_log->WriteFromSignal("term");
  _exit(0);
}
void OnTermIgnored(int) { g_log->WriteFromSignal("term"); }
volatile std::sig_atomic_t g_asked_to_return = 0;
volatile std::sig_atomic_t g_asked_to_stop = 0;
void OnTermStopped(int) {
  g_log->WriteFromSignal("term");
  g_asked_to_stop = 1;
}
void OnTermReturned(int) { g_asked_to_return = 1; }

class Oracle {
 public:
  explicit Oracle(Options options)
      : options_(std::move(options)),
        log_(options_.log),
        sampler_({options_.samples, options_.batch, options_.seed}),
        memory_(options_.in_place, options_.state_bytes),
        reduced_(options_.reduce_bytes / sizeof(float)) {
    g_log = &log_;
  }

  int Main() {
    Prepare();
    if (Status status = runtime_.Init(); !status.ok()) {
      std::fprintf(stderr, "oracle: %s\n", status.message().c_str());
      return 2;
    }
    if (memory_.Create() != ELASTIC_OK) {
      std::fprintf(stderr, "oracle: %s\n", elastic_last_error());
      return 2;
    }
    if (!options_.log.empty() && access((options_.log + "/began").c_str(), F_OK) == 0) {
      const auto until = std::chrono::steady_clock::now() + options_.newcomer_delay;
      while (g_asked_to_stop == 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (g_asked_to_stop != 0) {
        return 0;
      }
    }
    const elastic_status status = elastic_run(
        [](void* self) { return static_cast<elastic_status>(static_cast<Oracle*>(self)->Train()); },
        this);
    if (status != ELASTIC_OK) {
      std::fprintf(stderr, "oracle: %s: %s\n", elastic_status_name(status), elastic_last_error());
      if (options_.last_line.count() >= 0) {
        elastic_shutdown();
        std::this_thread::sleep_for(options_.last_line);
        std::printf("last line of a worker\n");
      }
      return options_.fail_code;
    }
    if (runtime_.rank() >= 0) {
      LogFinal();
    }
    return 0;
  }

 private:
  void Prepare() {
    if (options_.on_term != "default") {
      std::signal(SIGTERM, options_.on_term == "exit"     ? OnTerm
                           : options_.on_term == "return" ? OnTermReturned
                           : options_.on_term == "stop"   ? OnTermStopped
                                                          : OnTermIgnored);
    }
    if (options_.grandchild && fork() == 0) {
      setsid();
      if (fork() != 0) {
        _exit(0);
      }
      execlp("sleep", "elastic-test-grandchild", "1000", nullptr);
      _exit(66);
    }
    std::this_thread::sleep_for(options_.start_delay);
  }

  const OracleState& Current() const { return memory_.current(); }

  int Train() {
    log_.Write("begin " + Where(Current().steps) + " " + std::to_string(BootNanoseconds()));
    if (!memory_.whole()) {
      std::fprintf(stderr, "oracle: the state is torn at step %lu\n", Current().steps);
      _exit(70);
    }
    while (Current().steps < options_.steps) {
      if (const int status = Step(); status != ELASTIC_OK) {
        // The others leave too: this is no time to wait for a new generation.
        return g_asked_to_return != 0 ? ELASTIC_INTERNAL : status;
      }
      const bool obeys = options_.stop_at >= 0 || options_.on_term == "stop";
      if (obeys && runtime_.StopRequested()) {
        break;
      }
    }
    log_.Write("end " + Where(Current().steps) + " " + std::to_string(BootNanoseconds()));
    if (runtime_.rank() == options_.linger_rank) {
      std::this_thread::sleep_for(options_.linger);
    }
    return ELASTIC_OK;
  }

  // `generation rank size step`
  std::string Where(uint64_t step) const {
    return std::to_string(runtime_.generation()) + " " + std::to_string(runtime_.rank()) + " " +
           std::to_string(runtime_.size()) + " " + std::to_string(step);
  }

  int Step() {
    const uint64_t step = Current().steps;
    const uint32_t generation = runtime_.generation();
    if (static_cast<int64_t>(step) == options_.leave_at &&
        runtime_.local_rank() == options_.leave_slot) {
      _exit(0);
    }
    if (g_asked_to_return != 0 || (static_cast<int64_t>(step) == options_.fail_at &&
                                   runtime_.local_rank() == options_.fail_slot)) {
      return ELASTIC_INTERNAL;
    }
    const auto ids = sampler_.Share(Current().cursor, runtime_.rank(), runtime_.size());
    int64_t sums[2] = {0, 0};
    for (const uint64_t id : ids) {
      sums[0] += static_cast<int64_t>(id + 1);
      sums[1] += static_cast<int64_t>((id + 1) * (id + 1));
    }
    log_.Write("step " + Where(step) + " " + Join(ids));
    if (const elastic_status status = memory_.BeginStep(); status != ELASTIC_OK) {
      return status;
    }
    std::this_thread::sleep_for(StepTime(step));
    if (Status status = runtime_.AllReduce(sums, 2); !status.ok()) {
      return static_cast<int>(status.code());
    }
    if (const int status = BigReduce(); status != ELASTIC_OK) {
      return status;
    }
    if (static_cast<int64_t>(step) == options_.stop_at &&
        runtime_.local_rank() == options_.stop_slot) {
      (void)runtime_.RequestStop();
    }
    WriteNext(sums, step, generation);
    const bool uneven = static_cast<int64_t>(step) == options_.uneven_at &&
                        runtime_.local_rank() == options_.uneven_slot;
    if (uneven && options_.uneven == "return") {
      options_.steps = step;
      return ELASTIC_OK;
    }
    const uint64_t label = uneven && options_.uneven == "label" ? step + 1000 : step + 1;
    if (Status status = runtime_.Commit(label); !status.ok()) {
      return static_cast<int>(status.code());
    }
    return uneven && options_.uneven == "twice" ? static_cast<int>(runtime_.Commit(step + 2).code())
                                                : ELASTIC_OK;
  }

  std::chrono::microseconds StepTime(uint64_t step) {
    std::chrono::microseconds time = options_.step_time;
    if (options_.jitter > 0) {
      time += std::chrono::microseconds(jitter_.Below(options_.jitter));
    }
    if (static_cast<int64_t>(step) == options_.hold_at &&
        runtime_.local_rank() == options_.hold_slot) {
      time += options_.hold;
    }
    return time;
  }

  // Every rank adds its rank + 1, so each element must be n (n + 1) / 2 on every rank.
  int BigReduce() {
    if (reduced_.empty()) {
      return ELASTIC_OK;
    }
    const int size = runtime_.size();
    std::fill(reduced_.begin(), reduced_.end(), static_cast<float>(runtime_.rank() + 1));
    if (Status status = runtime_.AllReduce(reduced_.data(), reduced_.size()); !status.ok()) {
      return static_cast<int>(status.code());
    }
    for (const float value : reduced_) {
      if (value != static_cast<float>(size * (size + 1)) / 2) {
        std::fprintf(stderr, "oracle: allreduce gave %f at size %d\n", value, size);
        _exit(71);
      }
    }
    return ELASTIC_OK;
  }

  void WriteNext(const int64_t (&sums)[2], uint64_t step, uint32_t generation) {
    OracleState& next = memory_.next();
    next.weight += sums[0];
    next.squares += sums[1];
    next.cursor = sampler_.After(Current().cursor);
    next.generation_of_step[step] = generation;
    next.steps = step + 1;
    memory_.FinishNext(step + 1);
  }

  // `3,17,4`, or `-` for none.
  template <class Values>
  static std::string Join(const Values& values) {
    std::string text;
    for (const auto value : values) {
      text += (text.empty() ? "" : ",") + std::to_string(value);
    }
    return text.empty() ? "-" : text;
  }

  void LogFinal() {
    const OracleState& state = Current();
    log_.Write("final " + Where(state.steps) + " " + std::to_string(state.weight) + " " +
               std::to_string(state.squares) + " " +
               Join(std::span(state.generation_of_step).first(state.steps)));
  }

  Options options_;
  EventLog log_;
  Sampler sampler_;
  Rng jitter_{static_cast<uint64_t>(getpid())};
  OracleMemory memory_;
  Runtime runtime_;
  std::vector<float> reduced_;
};

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  Flags flags(argc, argv);
  Oracle oracle{Options(flags)};
  return oracle.Main();
}
