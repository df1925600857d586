#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker_runtime/elastic.h"

namespace fashion {

inline constexpr size_t kPixels = 28 * 28;
inline constexpr size_t kClasses = 10;

// Pictures as grey values 0..255, row by row, and what each one shows, 0..9.
struct Pictures {
  std::vector<uint8_t> pixels;  // count * kPixels
  std::vector<uint8_t> labels;  // count

  size_t count() const { return labels.size(); }
  const uint8_t* picture(size_t index) const { return pixels.data() + index * kPixels; }
};

struct Dataset {
  Pictures train;
  Pictures test;
};

// Reads the four gzipped IDX files of Fashion-MNIST, as Debian's dataset-fashion-mnist has them.
// Errors: FAILED_PRECONDITION when one is missing; DATA_LOSS when one is not what it should be.
// Source: Xiao, Rasul and Vollgraf, "Fashion-MNIST" (2017); IDX: yann.lecun.com/exdb/mnist.
elastic::Status Load(const std::string& folder, Dataset& dataset);

}  // namespace fashion
