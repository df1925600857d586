#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastic::internal {

// 64-bit digest of bytes, the same on every little-endian platform; detects accidents, proves
// nothing against an attacker. Eight independent multiply lanes so that large states hash near the
// speed of memory; the algorithm is our own and part of the wire format (version 1).
uint64_t HashBytes(const void* data, size_t bytes, uint64_t seed = 0);

// The same digest of bytes that come in pieces: HashBytes of all of them one behind the other.
class Hasher {
 public:
  // Of every piece but the last, a multiple of this.
  static constexpr size_t kBlockBytes = 64;

  explicit Hasher(uint64_t seed = 0);
  void Update(const void* data, size_t bytes);
  // Once, after the last piece.
  uint64_t Finish() const;

 private:
  static constexpr size_t kLanes = kBlockBytes / sizeof(uint64_t);

  const uint64_t seed_;
  std::array<uint64_t, kLanes> lanes_;
  uint64_t bytes_ = 0;
  std::array<unsigned char, kBlockBytes> rest_{};  // of the last piece
};

inline uint64_t HashText(std::string_view text, uint64_t seed = 0) {
  return HashBytes(text.data(), text.size(), seed);
}

// Mixes one more number into a running digest.
constexpr uint64_t HashMix(uint64_t digest, uint64_t value) {
  uint64_t mixed = (digest ^ value) * 0x9E3779B97F4A7C15ull;
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ull;
  return mixed ^ (mixed >> 29);
}

}  // namespace elastic::internal
