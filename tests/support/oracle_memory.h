#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tests/support/oracle_state.h"
#include "worker_runtime/elastic.h"

namespace elastic::internal::testing {

// Where the oracle worker's state lies: in the runtime's two buffers, or in memory of the worker's
// own that each step changes in place. Either way a header and a tail of so many words that all is
// `bytes` bytes; in place the tail has other sizes from time to time.
class OracleMemory {
 public:
  OracleMemory(bool in_place, size_t bytes)
      : in_place_(in_place), tail_words_((bytes - sizeof(OracleState)) / sizeof(uint64_t)) {}

  // After elastic_init, with the state before training.
  elastic_status Create() {
    if (in_place_) {
      tail_.resize(WordsOf(0));
      FillTail(tail_, 0);
      Status status = items_.Register("header", header_);
      if (status.ok()) {
        status = items_.Register("tail", tail_);
      }
      return static_cast<elastic_status>(status.code());
    }
    const elastic_status status =
        elastic_state_create(sizeof(OracleState) + tail_words_ * sizeof(uint64_t));
    if (status == ELASTIC_OK) {
      FillTail(TailBehind(elastic_state_current()), 0);
    }
    return status;
  }

  const OracleState& current() const {
    return in_place_ ? header_ : *static_cast<const OracleState*>(elastic_state_current());
  }
  // Every byte of the tail is of the header's step.
  bool whole() const {
    const std::span<const uint64_t> tail =
        in_place_ ? std::span(tail_) : TailBehind(elastic_state_current());
    return tail.size() == WordsOf(current().steps) && TailIsOf(tail, current().steps);
  }

  // In place the step changes its memory long before it can be committed.
  elastic_status BeginStep() { return in_place_ ? ChangeTail(current().steps + 1) : ELASTIC_OK; }
  // What the step commits; begins as `current`.
  OracleState& next() {
    if (in_place_) {
      return header_;
    }
    auto& next = *static_cast<OracleState*>(elastic_state_next());
    next = current();
    return next;
  }
  // Before the commit of next().
  void FinishNext(uint64_t steps) {
    if (!in_place_) {
      FillTail(TailBehind(elastic_state_next()), steps);
    }
  }

 private:
  static constexpr uint64_t kStepsOfOneSize = 10;
  static constexpr size_t kWordsMore = 4096;

  size_t WordsOf(uint64_t steps) const {
    return tail_words_ + (in_place_ ? steps / kStepsOfOneSize % 3 * kWordsMore : 0);
  }
  std::span<uint64_t> TailBehind(void* state) const {
    return {reinterpret_cast<uint64_t*>(static_cast<std::byte*>(state) + sizeof(OracleState)),
            tail_words_};
  }
  elastic_status ChangeTail(uint64_t steps) {
    Status status;
    if (tail_.size() != WordsOf(steps)) {
      tail_.resize(WordsOf(steps));
      status = items_.Resize("tail", tail_);
    }
    FillTail(tail_, steps);
    return static_cast<elastic_status>(status.code());
  }

  const bool in_place_;
  const size_t tail_words_;
  OracleState header_;
  std::vector<uint64_t> tail_;
  Items items_;
};

}  // namespace elastic::internal::testing
