#include "rendezvous/base/hash.h"

#include <cstring>

namespace elastic::internal {

namespace {

constexpr size_t kLanes = 8;
constexpr size_t kBlockBytes = kLanes * sizeof(uint64_t);

uint64_t Load(const unsigned char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

// A 32x32 multiply per lane and block vectorises on every x86-64; each input word reaches the lane
// both as itself and through the product, and the lanes are mixed once at the end.
uint64_t HashBytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t lane[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    lane[i] = HashMix(seed, i + 1);
  }
  size_t left = bytes;
  for (; left >= kBlockBytes; left -= kBlockBytes, at += kBlockBytes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const uint64_t word = Load(at + i * sizeof(uint64_t));
      const uint64_t keyed = word ^ lane[i];
      lane[i] = (lane[i] << 7 | lane[i] >> 57) + word + (keyed & 0xFFFFFFFFu) * (keyed >> 32);
    }
  }
  uint64_t digest = HashMix(seed, bytes);
  for (size_t i = 0; i < kLanes; ++i) {
    digest = HashMix(digest, lane[i]);
  }
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    digest = HashMix(digest, Load(at));
  }
  uint64_t tail = 0;
  if (left > 0) {  // `data` may be null if there are no bytes
    std::memcpy(&tail, at, left);
  }
  return HashMix(digest, tail);
}

}  // namespace elastic::internal
