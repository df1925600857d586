// Fits a line, data-parallel and elastic, with state that stays in the program's own memory and is
// changed in place, as a framework does it: registered once, copied by each Commit, put back by
// Run after the loss of a worker.

#include <elastic/elastic.h>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kPoints = 1000;
constexpr uint64_t kSteps = 400;

struct Model {
  std::vector<double> weights{0, 0};  // of x and of 1
  std::vector<double> momentum{0, 0};
  elastic::Cursor cursor;
  uint64_t step = 0;
};

// One step on `ids` points of the line 3 x - 1, with x from 0 to 1; the gradient's sums over all
// ranks, then the model is changed where it lies.
elastic::Status Step(elastic::Runtime& runtime, const std::vector<uint64_t>& ids, Model& model) {
  double sums[3] = {0, 0, static_cast<double>(ids.size())};
  for (const uint64_t id : ids) {
    const double x = static_cast<double>(id) / kPoints;
    const double error = model.weights[0] * x + model.weights[1] - (3 * x - 1);
    sums[0] += error * x;
    sums[1] += error;
  }
  ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(sums, 3));
  for (size_t i = 0; i < model.weights.size(); ++i) {
    model.momentum[i] = 0.9 * model.momentum[i] + sums[i] / sums[2];
    model.weights[i] -= 0.1 * model.momentum[i];
  }
  return elastic::Status();
}

elastic::Status Train(elastic::Runtime& runtime, Model& model) {
  const elastic::Sampler sampler({.samples = kPoints, .batch = 100, .seed = 1});
  while (model.step < kSteps) {
    const auto ids = sampler.Share(model.cursor, runtime.rank(), runtime.size());
    ELASTIC_RETURN_IF_ERROR(Step(runtime, ids, model));
    model.cursor = sampler.After(model.cursor);
    ++model.step;
    ELASTIC_RETURN_IF_ERROR(runtime.Commit(model.step));
  }
  return elastic::Status();
}

elastic::Status Run(elastic::Runtime& runtime, elastic::Items& items, Model& model) {
  ELASTIC_RETURN_IF_ERROR(runtime.Init());
  ELASTIC_RETURN_IF_ERROR(items.Register("weights", model.weights));
  ELASTIC_RETURN_IF_ERROR(items.Register("momentum", model.momentum));
  ELASTIC_RETURN_IF_ERROR(items.Register("cursor", model.cursor));
  ELASTIC_RETURN_IF_ERROR(items.Register("step", model.step));
  return runtime.Run(items, [&](elastic::Items&) { return Train(runtime, model); });
}

}  // namespace

int main() {
  Model model;
  elastic::Items items;
  elastic::Runtime runtime;
  if (elastic::Status status = Run(runtime, items, model); !status.ok()) {
    std::fprintf(stderr, "in_place: %s\n", status.message().c_str());
    return 1;
  }
  if (runtime.rank() == 0) {
    std::printf("slope %.3f, intercept %.3f\n", model.weights[0], model.weights[1]);
  }
  return 0;
}
