#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker_runtime/examples/fashion_mnist/dataset.h"

namespace fashion {

inline constexpr size_t kHidden = 128;

// 784-128-10 with a tanh hidden layer. Plain data: part of the state that is committed.
// tanh, not ReLU: with f32 sums in another order (other ranks, other order) a ReLU network drifts
// past 1e-3 of the undisturbed loss within some hundred steps, a tanh network stays within 1e-4.
struct Parameters {
  float hidden_weights[kPixels][kHidden];
  float hidden_bias[kHidden];
  float output_weights[kHidden][kClasses];
  float output_bias[kClasses];
};
inline constexpr size_t kParameterCount = sizeof(Parameters) / sizeof(float);

// What one rank adds to a step, summed over its samples; one array of floats for one allreduce.
struct Gradients {
  Parameters parameters;
  float loss;
  float samples;
};
inline constexpr size_t kGradientCount = sizeof(Gradients) / sizeof(float);

// Uniform, scaled by the layers' widths; the same for the same seed.
// Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
// networks" (2010).
void Initialise(Parameters& parameters, uint64_t seed);

// Gradients of softmax cross-entropy. Keeps its working memory from one call to the next.
class Trainer {
 public:
  explicit Trainer(const Pictures& pictures) : pictures_(pictures) {}

  // Overwrites `gradients` with the sums over the samples of `ids`.
  void Compute(const Parameters& parameters, const std::vector<uint64_t>& ids,
               Gradients& gradients);

 private:
  const Pictures& pictures_;
  std::vector<float> inputs_;
  std::vector<float> hidden_;
  std::vector<float> hidden_errors_;
};

// Share of pictures that are recognised, 0..1.
double Accuracy(const Parameters& parameters, const Pictures& pictures);

}  // namespace fashion
