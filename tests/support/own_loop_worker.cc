// The oracle worker of a program with a loop and a communication of its own: the same state and the
// same logs as oracle_worker.cc, but no elastic_run and no collective of the runtime. What it says
// on standard output is what elastic_poll told it.

#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/support/event_log.h"
#include "tests/support/flags.h"
#include "tests/support/oracle_state.h"
#include "tests/support/own_mesh.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {
namespace {

struct Options {
  explicit Options(Flags flags)
      : log(flags.Text("--log", "")),
        steps(static_cast<uint64_t>(flags.Number("--steps", 200))),
        sampler({.samples = static_cast<uint64_t>(flags.Number("--samples", 1000)),
                 .batch = static_cast<uint64_t>(flags.Number("--batch", 48)),
                 .seed = static_cast<uint64_t>(flags.Number("--seed", 1))}),
        step_time(flags.Number("--step-us", 2000)),
        put_delay(flags.Number("--put-us", 0)),
        stop_step(static_cast<uint64_t>(flags.Number("--stop-step", 0))),
        helper(flags.Number("--helper", 0) != 0) {
    flags.Check();
  }

  std::string log;  // folder
  uint64_t steps;
  Sampler sampler;
  std::chrono::microseconds step_time;
  std::chrono::microseconds put_delay;  // see OwnMesh::Connect
  uint64_t stop_step;                   // the last rank asks for the job's stop there; 0: never
  bool helper;                          // forks a process that outlives what it is told
};

class OwnLoop {
 public:
  explicit OwnLoop(Options options)
      : options_(std::move(options)), log_(options_.log), mesh_(runtime_) {}

  int Main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (Status status = Prepare(); !status.ok()) {
      return Fail(status);
    }
    while (true) {
      Status status = runtime_.Join();
      if (status.ok()) {
        status = Train();
      }
      if (status.ok() || status.code() == Code::kFinished) {
        LogFinal();
        return 0;
      }
      if (status.code() != Code::kAborted) {
        return Fail(status);
      }
    }
  }

 private:
  static int Fail(const Status& status) {
    std::fprintf(stderr, "own_loop: %s\n", status.message().c_str());
    return 2;
  }

  Status Prepare() {
    ELASTIC_RETURN_IF_ERROR(runtime_.Init());
    return runtime_.CreateState(state_);
  }

  // Till the job has finished, or ABORTED.
  Status Train() {
    log_.Write("begin " + Where() + " " + std::to_string(BootNanoseconds()));
    ELASTIC_RETURN_IF_ERROR(mesh_.Connect(options_.put_delay));
    if (options_.helper && fork() == 0) {
      BeHelper();
    }
    while (state_.current().steps < options_.steps) {
      ELASTIC_RETURN_IF_ERROR(Look());
      if (stop_) {
        std::printf("own_loop: stops after step %d\n", static_cast<int>(state_.current().steps));
        break;
      }
      ELASTIC_RETURN_IF_ERROR(Step());
    }
    log_.Write("end " + Where() + " " + std::to_string(BootNanoseconds()));
    return runtime_.Finish();
  }

  // As a data loader that its program forks in mid-training. It says what the library tells it.
  [[noreturn]] void BeHelper() {
    int64_t value = 1;
    Event event = Event::kContinue;
    std::string text;
    for (const Status& status :
         {runtime_.Join(), runtime_.AllReduce(&value, 1), runtime_.Commit(1), runtime_.Poll(event),
          runtime_.Put("key", "value"), runtime_.Get("key", text), runtime_.Finish()}) {
      if (status.code() != Code::kFailedPrecondition ||
          status.message().find("forked") == std::string::npos) {
        std::printf("own_loop: helper is not refused: %s\n", status.message().c_str());
      }
    }
    std::printf("own_loop: helper is refused, rank %d\n", runtime_.rank());
    while (true) {
      pause();
    }
  }

  Status Look() {
    Event event = Event::kContinue;
    ELASTIC_RETURN_IF_ERROR(runtime_.Poll(event));
    switch (event) {
      case Event::kContinue: return {};
      case Event::kRestore: return {Code::kAborted, "the generation is over"};
      case Event::kReformed:
        std::printf("own_loop: reformed\n");
        return mesh_.Connect(options_.put_delay);
      case Event::kCommitWanted: std::printf("own_loop: commit wanted\n"); return {};
      case Event::kStopAt: stop_ = true; return {};
    }
    return {};
  }

  Status Step() {
    const OracleState& now = state_.current();
    const uint32_t generation = runtime_.generation();
    std::array<int64_t, 2> sums = {0, 0};
    std::string text;
    for (const uint64_t id : options_.sampler.Share(now.cursor, runtime_.rank(), runtime_.size())) {
      sums[0] += static_cast<int64_t>(id + 1);
      sums[1] += static_cast<int64_t>((id + 1) * (id + 1));
      text += (text.empty() ? "" : ",") + std::to_string(id);
    }
    log_.Write("step " + Where() + " " + (text.empty() ? "-" : text));
    std::this_thread::sleep_for(options_.step_time);
    if (now.steps + 1 == options_.stop_step && runtime_.rank() == runtime_.size() - 1) {
      ELASTIC_RETURN_IF_ERROR(runtime_.RequestStop());
    }
    ELASTIC_RETURN_IF_ERROR(mesh_.Sum(sums));
    OracleState& next = state_.next();
    next = now;
    next.weight += sums[0];
    next.squares += sums[1];
    next.cursor = options_.sampler.After(now.cursor);
    next.generation_of_step[now.steps] = generation;
    next.steps = now.steps + 1;
    return runtime_.Commit(next.steps);
  }

  // `generation rank size step`
  std::string Where() const {
    return std::to_string(runtime_.generation()) + " " + std::to_string(runtime_.rank()) + " " +
           std::to_string(runtime_.size()) + " " + std::to_string(state_.current().steps);
  }

  void LogFinal() {
    if (runtime_.rank() < 0) {
      return;
    }
    const OracleState& state = state_.current();
    std::string generations;
    for (uint64_t step = 0; step < state.steps; ++step) {
      generations += (step == 0 ? "" : ",") + std::to_string(state.generation_of_step[step]);
    }
    log_.Write("final " + Where() + " " + std::to_string(state.weight) + " " +
               std::to_string(state.squares) + " " + generations);
  }

  Options options_;
  EventLog log_;
  Runtime runtime_;
  State<OracleState> state_;
  OwnMesh mesh_;
  bool stop_ = false;  // told by elastic_poll
};

}  // namespace
}  // namespace elastic::internal::testing

int main(int argc, char** argv) {
  using namespace elastic::internal::testing;
  return OwnLoop{Options(Flags(argc, argv))}.Main();
}
