#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace elastic {

// Where a job is in its data. Part of the committed state, so that a restore goes on exactly after
// the last committed sample. Plain data: put it into the struct of State<T>.
struct Cursor {
  uint64_t epoch = 0;     // passes over the data that are complete
  uint64_t position = 0;  // samples of the present pass that are used up
};

// Which samples belong to a step: every sample of a pass exactly once, whatever the number of
// workers and however often it changes.
//
// Idea: the order of a pass depends on (seed, epoch) only; a global batch is the next `batch`
// samples of that order, the ranks split it into contiguous shares. Everything is a pure function
// of (seed, epoch, position, rank, size), so there is nothing to restore but the cursor. The last
// batch of a pass may be short and is used, not dropped; a share may then be empty.
//
// The order is a keyed permutation that is computed element by element (a four-round Feistel
// network over the next power of four, walked until the value is in range), not a shuffled array:
// no memory and no work per pass, whatever the size of the data set.
// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains" (2002), cycle walking.
class Sampler {
 public:
  // Equal on all ranks; the order of samples follows from it alone.
  struct Options {
    uint64_t samples = 0;  // in the data set; at least 1
    uint64_t batch = 0;    // global batch; at least 1
    uint64_t seed = 0;
  };
  explicit Sampler(Options options) : options_(options) {
    while ((uint64_t{1} << (2 * half_bits_)) < options_.samples) {
      ++half_bits_;
    }
  }

  // In the data set: Options::samples.
  uint64_t samples() const { return options_.samples; }

  // Samples in the global batch that begins at `cursor`.
  uint64_t BatchSize(Cursor cursor) const {
    return std::min(options_.batch, options_.samples - cursor.position);
  }

  // The cursor after that batch; the next pass begins when the data is used up.
  Cursor After(Cursor cursor) const {
    cursor.position += BatchSize(cursor);
    if (cursor.position >= options_.samples) {
      return {cursor.epoch + 1, 0};
    }
    return cursor;
  }

  // Sample ids, 0 .. samples-1, of rank's share of the batch that begins at `cursor`. Shares differ
  // by at most one sample; lower ranks have the larger ones. Requires: 0 <= rank < size.
  std::vector<uint64_t> Share(Cursor cursor, int rank, int size) const {
    const uint64_t total = BatchSize(cursor);
    const auto ranks = static_cast<uint64_t>(size);
    const auto self = static_cast<uint64_t>(rank);
    const uint64_t begin = total / ranks * self + std::min(self, total % ranks);
    const uint64_t count = total / ranks + (self < total % ranks ? 1 : 0);
    std::vector<uint64_t> ids(count);
    for (uint64_t i = 0; i < count; ++i) {
      ids[i] = At(cursor.epoch, cursor.position + begin + i);
    }
    return ids;
  }

  // The sample at `position` of pass `epoch`. Requires: position < samples.
  uint64_t At(uint64_t epoch, uint64_t position) const {
    const uint64_t key = Mix(options_.seed ^ Mix(epoch + 1));
    uint64_t value = position;
    do {
      value = Permute(value, key);
    } while (value >= options_.samples);
    return value;
  }

 private:
  static uint64_t Mix(uint64_t value) {
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
  }

  uint64_t Permute(uint64_t value, uint64_t key) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = (left ^ Mix(right ^ Mix(key + round))) & mask;
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  Options options_;
  int half_bits_ = 1;
};

}  // namespace elastic
