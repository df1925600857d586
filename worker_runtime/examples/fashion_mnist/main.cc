// Trains a picture classifier on Fashion-MNIST, data-parallel and elastic: the whole of a user's
// program. What it does for elasticity: its state is one plain struct in elastic::State, the
// samples of a step come from elastic::Sampler and the cursor in the state, the function that
// trains may be called again, and gradients are divided by the samples that were really used.

#include <unistd.h>

#include <elastic/elastic.h>
#include <cstdio>
#include <memory>

#include "worker_runtime/examples/fashion_mnist/dataset.h"
#include "worker_runtime/examples/fashion_mnist/model.h"
#include "worker_runtime/examples/fashion_mnist/options.h"
#include "worker_runtime/examples/fashion_mnist/pace.h"
#include "worker_runtime/examples/fashion_mnist/recorder.h"

namespace fashion {

namespace {

constexpr uint64_t kBatch = 256;  // of all ranks together, at every size
constexpr float kLearningRate = 0.05f;
constexpr float kMomentum = 0.9f;

// All that a step depends on.
struct Training {
  Parameters parameters;
  Parameters velocity;
  elastic::Cursor cursor;
  uint64_t step;
};
using State = elastic::State<Training>;

class Program {
 public:
  explicit Program(Options options) : options_(std::move(options)), pace_(options_.step_time_ns) {}

  int Main() {
    if (elastic::Status status = Prepare(); !status.ok()) {
      std::fprintf(stderr, "fashion_mnist: %s\n", status.message().c_str());
      return 2;
    }
    const elastic::Status status =
        runtime_.Run(state_, [this](State& state) { return Train(state); });
    if (!status.ok()) {
      std::fprintf(stderr, "fashion_mnist: %s\n", status.message().c_str());
      return 1;
    }
    if (runtime_.rank() == 0) {
      std::printf("test accuracy %.4f\n", Accuracy(state_.current().parameters, dataset_.test));
    }
    return 0;
  }

 private:
  elastic::Status Prepare() {
    ELASTIC_RETURN_IF_ERROR(Load(options_.data, dataset_));
    ELASTIC_RETURN_IF_ERROR(runtime_.Init({.log = [](elastic::Severity, std::string_view line) {
      std::fprintf(stderr, "elastic: %.*s\n", static_cast<int>(line.size()), line.data());
    }}));
    ELASTIC_RETURN_IF_ERROR(recorder_.Open(options_.record, runtime_.incarnation()));
    ELASTIC_RETURN_IF_ERROR(runtime_.CreateState(state_));
    Initialise(state_.initial().parameters, options_.seed);
    return elastic::Status();
  }

  // Called again after each loss of a worker, with the newest committed state.
  elastic::Status Train(State& state) {
    std::printf("pid %d is rank %d of %d in generation %u, at step %lu\n", getpid(),
                runtime_.rank(), runtime_.size(), runtime_.generation(), state.current().step);
    const elastic::Sampler sampler(
        {.samples = dataset_.train.count(), .batch = kBatch, .seed = options_.seed});
    while (state.current().cursor.epoch < options_.epochs) {
      ELASTIC_RETURN_IF_ERROR(Step(sampler, state));
      pace_.WaitForStepEnd();
    }
    return elastic::Status();
  }

  elastic::Status Step(const elastic::Sampler& sampler, State& state) {
    const Training& now = state.current();
    const uint32_t generation = runtime_.generation();
    const auto ids = sampler.Share(now.cursor, runtime_.rank(), runtime_.size());
    const Recorder::Step at{.step = now.step + 1, .generation = generation};
    recorder_.WriteIds(at, ids);
    trainer_.Compute(now.parameters, ids, *gradients_);
    ELASTIC_RETURN_IF_ERROR(
        runtime_.AllReduce(reinterpret_cast<float*>(gradients_.get()), kGradientCount));
    const float loss = gradients_->loss / gradients_->samples;

    Training& next = state.next();
    Update(now, next);
    next.cursor = sampler.After(now.cursor);
    next.step = now.step + 1;
    recorder_.WriteLoss(at, loss);
    const uint64_t step = next.step;
    const uint64_t epoch = now.cursor.epoch;
    ELASTIC_RETURN_IF_ERROR(runtime_.Commit(step));
    Report({.step = step, .epoch = epoch, .generation = generation, .loss = loss});
    return elastic::Status();
  }

  // Stochastic gradient descent with momentum, on the mean over the global batch.
  void Update(const Training& now, Training& next) const {
    const auto* weights = reinterpret_cast<const float*>(&now.parameters);
    const auto* velocity = reinterpret_cast<const float*>(&now.velocity);
    const auto* sums = reinterpret_cast<const float*>(&gradients_->parameters);
    auto* next_weights = reinterpret_cast<float*>(&next.parameters);
    auto* next_velocity = reinterpret_cast<float*>(&next.velocity);
    for (size_t i = 0; i < kParameterCount; ++i) {
      next_velocity[i] = kMomentum * velocity[i] + sums[i] / gradients_->samples;
      next_weights[i] = weights[i] - kLearningRate * next_velocity[i];
    }
  }

  struct Progress {
    uint64_t step = 0;
    uint64_t epoch = 0;
    uint32_t generation = 0;
    float loss = 0;
  };
  void Report(const Progress& progress) {
    samples_since_report_ += gradients_->samples;
    if (progress.step % options_.report_interval != 0) {
      return;
    }
    const double seconds = pace_.SecondsSinceReport();
    if (runtime_.rank() == 0) {
      std::printf("step %lu  epoch %lu  generation %u  size %d  loss %.6f  %.0f samples/s\n",
                  progress.step, progress.epoch, progress.generation, runtime_.size(),
                  static_cast<double>(progress.loss), samples_since_report_ / seconds);
    }
    samples_since_report_ = 0;
  }

  const Options options_;
  Dataset dataset_;
  Pace pace_;
  elastic::Runtime runtime_;
  State state_;
  Recorder recorder_;
  Trainer trainer_{dataset_.train};
  const std::unique_ptr<Gradients> gradients_ = std::make_unique<Gradients>();
  double samples_since_report_ = 0;
};

}  // namespace

}  // namespace fashion

int main(int count, char** arguments) {
  fashion::Options options;
  if (elastic::Status status = fashion::Parse(count, arguments, options); !status.ok()) {
    std::fprintf(stderr, "fashion_mnist: %s\n", status.message().c_str());
    return 2;
  }
  if (options.help) {
    std::fputs(fashion::Usage(), stdout);
    return 0;
  }
  // Lines are for people who watch, also through a pipe.
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return std::make_unique<fashion::Program>(std::move(options))->Main();
}
