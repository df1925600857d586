#include "worker_runtime/examples/fashion_mnist/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// Loops over blocks that fit the registers, in GCC's vector types, with a version for AVX2 where
// the machine has it: four workers on two cores shall train in seconds. The versions round alike,
// since nothing contracts to fused multiply-add (ISO mode of the compiler).
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define FASHION_VERSIONS __attribute__((target_clones("default", "avx2")))
#else
#define FASHION_VERSIONS
#endif

namespace fashion {

namespace {

using Vector = float __attribute__((vector_size(32)));
constexpr size_t kLanes = sizeof(Vector) / sizeof(float);
constexpr size_t kVectors = 4;                // accumulators of a block, per row
constexpr size_t kBlock = kVectors * kLanes;  // hidden units of a block
constexpr size_t kRows = 2;                   // samples or pixels of a block
static_assert(kHidden % kBlock == 0 && kPixels % kRows == 0);

// output[r][0..kBlock) = sum over i < terms of left[r * row_stride + i * term_stride] *
// right[i * right_stride + 0..kBlock), for kRows rows.
struct Product {
  const float* left;
  size_t row_stride;
  size_t term_stride;
  const float* right;
  size_t right_stride;
  size_t terms;
  float* output;
  size_t output_stride;
};

FASHION_VERSIONS void MultiplyBlock(const Product& product) {
  Vector sums[kRows][kVectors] = {};
  for (size_t i = 0; i < product.terms; ++i) {
    const float* right = product.right + i * product.right_stride;
    const float first = product.left[i * product.term_stride];
    const float second = product.left[i * product.term_stride + product.row_stride];
    for (size_t v = 0; v < kVectors; ++v) {
      Vector values;
      std::memcpy(&values, right + v * kLanes, sizeof values);
      sums[0][v] += values * first;
      sums[1][v] += values * second;
    }
  }
  for (size_t row = 0; row < kRows; ++row) {
    std::memcpy(product.output + row * product.output_stride, sums[row], sizeof sums[row]);
  }
}

// The sums before tanh of `count` samples, an even number, from their inputs.
void HiddenSums(const Parameters& parameters, const float* inputs, size_t count, float* hidden) {
  for (size_t unit = 0; unit < kHidden; unit += kBlock) {
    for (size_t sample = 0; sample < count; sample += kRows) {
      MultiplyBlock({.left = inputs + sample * kPixels,
                     .row_stride = kPixels,
                     .term_stride = 1,
                     .right = &parameters.hidden_weights[0][unit],
                     .right_stride = kHidden,
                     .terms = kPixels,
                     .output = hidden + sample * kHidden + unit,
                     .output_stride = kHidden});
    }
  }
}

void ActivateHidden(const Parameters& parameters, size_t count, float* hidden) {
  for (size_t sample = 0; sample < count; ++sample) {
    float* row = hidden + sample * kHidden;
    for (size_t unit = 0; unit < kHidden; ++unit) {
      row[unit] = std::tanh(row[unit] + parameters.hidden_bias[unit]);
    }
  }
}

// The ten outputs before softmax.
void Outputs(const Parameters& parameters, const float* hidden, float* outputs) {
  std::copy_n(parameters.output_bias, kClasses, outputs);
  for (size_t unit = 0; unit < kHidden; ++unit) {
    for (size_t label = 0; label < kClasses; ++label) {
      outputs[label] += hidden[unit] * parameters.output_weights[unit][label];
    }
  }
}

// Turns outputs into the error of each class and gives the loss.
float SoftmaxErrors(float* outputs, uint8_t truth) {
  const float largest = *std::max_element(outputs, outputs + kClasses);
  float total = 0;
  for (size_t label = 0; label < kClasses; ++label) {
    outputs[label] = std::exp(outputs[label] - largest);
    total += outputs[label];
  }
  for (size_t label = 0; label < kClasses; ++label) {
    outputs[label] /= total;
  }
  const float loss = -std::log(std::max(outputs[truth], 1e-12f));
  outputs[truth] -= 1;
  return loss;
}

void FillInput(const uint8_t* picture, float* input) {
  for (size_t pixel = 0; pixel < kPixels; ++pixel) {
    input[pixel] = static_cast<float>(picture[pixel]) / 255.0f;
  }
}

// Adds one sample's part to the output layer and gives the errors of its hidden units.
void OutputGradients(const Parameters& parameters, const float* hidden, const float* errors,
                     Parameters& sums, float* hidden_errors) {
  for (size_t label = 0; label < kClasses; ++label) {
    sums.output_bias[label] += errors[label];
  }
  for (size_t unit = 0; unit < kHidden; ++unit) {
    float back = 0;
    for (size_t label = 0; label < kClasses; ++label) {
      sums.output_weights[unit][label] += hidden[unit] * errors[label];
      back += parameters.output_weights[unit][label] * errors[label];
    }
    hidden_errors[unit] = back * (1 - hidden[unit] * hidden[unit]);
    sums.hidden_bias[unit] += hidden_errors[unit];
  }
}

uint64_t NextRandom(uint64_t& state) {
  uint64_t value = (state += 0x9E3779B97F4A7C15ull);
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

void FillUniform(float* weights, size_t count, float range, uint64_t& random) {
  for (size_t i = 0; i < count; ++i) {
    const float unit = static_cast<float>(NextRandom(random) >> 40) / 16777216.0f;
    weights[i] = (2 * unit - 1) * range;
  }
}

}  // namespace

void Initialise(Parameters& parameters, uint64_t seed) {
  uint64_t random = seed;
  parameters = Parameters{};
  FillUniform(&parameters.hidden_weights[0][0], kPixels * kHidden,
              std::sqrt(6.0f / (kPixels + kHidden)), random);
  FillUniform(&parameters.output_weights[0][0], kHidden * kClasses,
              std::sqrt(6.0f / (kHidden + kClasses)), random);
}

void Trainer::Compute(const Parameters& parameters, const std::vector<uint64_t>& ids,
                      Gradients& gradients) {
  gradients = Gradients{};
  // Blocks take samples in pairs: an odd one is filled up with a row of zeros.
  const size_t rows = (ids.size() + 1) / kRows * kRows;
  inputs_.assign(rows * kPixels, 0);
  hidden_.resize(rows * kHidden);
  hidden_errors_.assign(rows * kHidden, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    FillInput(pictures_.picture(ids[i]), inputs_.data() + i * kPixels);
  }
  HiddenSums(parameters, inputs_.data(), rows, hidden_.data());
  ActivateHidden(parameters, rows, hidden_.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    float errors[kClasses];
    Outputs(parameters, hidden_.data() + i * kHidden, errors);
    gradients.loss += SoftmaxErrors(errors, pictures_.labels[ids[i]]);
    OutputGradients(parameters, hidden_.data() + i * kHidden, errors, gradients.parameters,
                    hidden_errors_.data() + i * kHidden);
  }
  gradients.samples = static_cast<float>(ids.size());
  for (size_t unit = 0; unit < kHidden && rows > 0; unit += kBlock) {
    for (size_t pixel = 0; pixel < kPixels; pixel += kRows) {
      MultiplyBlock({.left = inputs_.data() + pixel,
                     .row_stride = 1,
                     .term_stride = kPixels,
                     .right = hidden_errors_.data() + unit,
                     .right_stride = kHidden,
                     .terms = rows,
                     .output = &gradients.parameters.hidden_weights[pixel][unit],
                     .output_stride = kHidden});
    }
  }
}

double Accuracy(const Parameters& parameters, const Pictures& pictures) {
  std::vector<float> inputs(kRows * kPixels);
  std::vector<float> hidden(kRows * kHidden);
  size_t right = 0;
  for (size_t index = 0; index < pictures.count(); index += kRows) {
    const size_t count = std::min(kRows, pictures.count() - index);
    for (size_t row = 0; row < count; ++row) {
      FillInput(pictures.picture(index + row), inputs.data() + row * kPixels);
    }
    HiddenSums(parameters, inputs.data(), kRows, hidden.data());
    ActivateHidden(parameters, kRows, hidden.data());
    for (size_t row = 0; row < count; ++row) {
      float outputs[kClasses];
      Outputs(parameters, hidden.data() + row * kHidden, outputs);
      const auto guess = std::max_element(outputs, outputs + kClasses) - outputs;
      right += static_cast<size_t>(guess) == pictures.labels[index + row] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(pictures.count());
}

}  // namespace fashion
