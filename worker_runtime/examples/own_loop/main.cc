// Fits a line with a loop of its own, instead of a function that the runtime calls, and commits
// seldom: every so many steps, or when others wait for it. Usage: own_loop [STEPS [COMMIT_EVERY]]

#include <elastic/elastic.h>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr uint64_t kPoints = 1000;

struct Model {
  double slope;
  double intercept;
  elastic::Cursor cursor;
  uint64_t step;
};

class Trainer {
 public:
  Trainer(uint64_t steps, uint64_t commit_every) : steps_(steps), commit_every_(commit_every) {}

  elastic::Status Main() {
    ELASTIC_RETURN_IF_ERROR(runtime_.Init());
    ELASTIC_RETURN_IF_ERROR(runtime_.CreateState(state_));
    while (true) {
      elastic::Status status = runtime_.Join();
      if (status.ok()) {
        status = Train();
      }
      if (status.code() != elastic::Code::kAborted) {
        return status;  // finished, with or without an error
      }
    }
  }

  void Print() const {
    if (runtime_.rank() == 0) {
      std::printf("slope %.3f, intercept %.3f\n", state_.current().slope,
                  state_.current().intercept);
    }
  }

 private:
  // Till the end, or ABORTED: then what was not committed is lost, and Join is called again.
  elastic::Status Train() {
    Model model = state_.current();
    while (state_.current().step < steps_ && !runtime_.StopRequested()) {
      bool commit = false;
      ELASTIC_RETURN_IF_ERROR(Look(commit));
      ELASTIC_RETURN_IF_ERROR(Step(model, commit));
      if (commit || model.step % commit_every_ == 0 || model.step == steps_) {
        state_.next() = model;
        ELASTIC_RETURN_IF_ERROR(runtime_.Commit(model.step));
      }
    }
    return runtime_.Finish();
  }

  // What has happened since the last step.
  elastic::Status Look(bool& commit) {
    elastic::Event event = elastic::Event::kContinue;
    ELASTIC_RETURN_IF_ERROR(runtime_.Poll(event));
    switch (event) {
      case elastic::Event::kContinue:
      case elastic::Event::kStopAt: break;  // the loop looks at that
      case elastic::Event::kReformed:
        std::printf("rank %d of %d from here\n", runtime_.rank(), runtime_.size());
        break;
      case elastic::Event::kRestore: return {elastic::Code::kAborted, "a worker was lost"};
      case elastic::Event::kCommitWanted: commit = true; break;
    }
    return elastic::Status();
  }

  // One step on the line 3 x - 1, with x from 0 to 1. `commit`: of any rank, since all must commit
  // equally often.
  elastic::Status Step(Model& model, bool& commit) {
    double sums[4] = {0, 0, 0, commit ? 1.0 : 0.0};
    for (const uint64_t id : sampler_.Share(model.cursor, runtime_.rank(), runtime_.size())) {
      const double x = static_cast<double>(id) / kPoints;
      const double error = model.slope * x + model.intercept - (3 * x - 1);
      sums[0] += error * x;
      sums[1] += error;
      sums[2] += 1;
    }
    ELASTIC_RETURN_IF_ERROR(runtime_.AllReduce(sums, 4));
    model.slope -= sums[0] / sums[2];
    model.intercept -= sums[1] / sums[2];
    model.cursor = sampler_.After(model.cursor);
    ++model.step;
    commit = sums[3] > 0;
    return elastic::Status();
  }

  uint64_t steps_;
  uint64_t commit_every_;
  elastic::Runtime runtime_;
  elastic::State<Model> state_;
  elastic::Sampler sampler_{{.samples = kPoints, .batch = 100, .seed = 1}};
};

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // also into elastic-run's pipe
  const auto number = [&](int index, uint64_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
  };
  Trainer trainer(number(1, 400), number(2, 20));
  const elastic::Status status = trainer.Main();
  if (!status.ok() && status.code() != elastic::Code::kFinished) {
    std::fprintf(stderr, "own_loop: %s\n", status.message().c_str());
    return 1;
  }
  trainer.Print();
  return 0;
}
