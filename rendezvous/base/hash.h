#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastic::internal {

// 64-bit digest of bytes, the same on every little-endian platform; detects accidents, proves
// nothing against an attacker. Eight independent multiply lanes so that large states hash near the
// speed of memory; the algorithm is our own and part of the wire format (version 1).
uint64_t HashBytes(const void* data, size_t bytes, uint64_t seed = 0);

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
