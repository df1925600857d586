#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace elastic::internal {

// Reads a fuzzer's bytes as values, front to back. At the end every value is zero, so that any
// input is a whole story and shorter ones are simpler.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }

  template <class T>
  T Take() {
    T value{};
    const size_t bytes = left_.size() < sizeof value ? left_.size() : sizeof value;
    if (bytes > 0) {
      std::memcpy(&value, left_.data(), bytes);
    }
    left_ = left_.subspan(bytes);
    return value;
  }
  // 0 .. count-1
  uint32_t Below(uint32_t count) { return Take<uint8_t>() % count; }
  std::span<const uint8_t> Bytes(size_t count) {
    const auto taken = left_.first(left_.size() < count ? left_.size() : count);
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::string Text(size_t count) {
    const auto taken = Bytes(count);
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const uint8_t> left_;
};

// Ends the process with a text, which libFuzzer reports together with the input: a property that
// does not hold.
[[noreturn]] void Broken(std::string_view what);

}  // namespace elastic::internal
