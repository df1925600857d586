#pragma once

#include <cstdint>

namespace elastic::internal {

// Seeded random numbers that are the same on every platform (style rule 4).
// Source: SplitMix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
// (2014).
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t value = (state_ += 0x9E3779B97F4A7C15ull);
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
  }

  // Uniform in [0, bound). Requires: bound > 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // True `numerator` times in `denominator`.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }

 private:
  uint64_t state_;
};

}  // namespace elastic::internal
