#include "rendezvous/base/hash.h"

#include <cstring>

#include "rendezvous/base/check.h"

namespace elastic::internal {

namespace {

uint64_t Load(const unsigned char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

Hasher::Hasher(uint64_t seed) : seed_(seed) {
  for (size_t i = 0; i < kLanes; ++i) {
    lanes_[i] = HashMix(seed, i + 1);
  }
}

// A 32x32 multiply per lane and block vectorises on every x86-64; each input word reaches the lane
// both as itself and through the product, and the lanes are mixed once at the end.
void Hasher::Update(const void* data, size_t bytes) {
  ELASTIC_CHECK(bytes_ % kBlockBytes == 0);
  const auto* at = static_cast<const unsigned char*>(data);
  std::array<uint64_t, kLanes> lane = lanes_;  // in registers, which members would not be
  size_t left = bytes;
  for (; left >= kBlockBytes; left -= kBlockBytes, at += kBlockBytes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const uint64_t word = Load(at + i * sizeof(uint64_t));
      const uint64_t keyed = word ^ lane[i];
      lane[i] = (lane[i] << 7 | lane[i] >> 57) + word + (keyed & 0xFFFFFFFFu) * (keyed >> 32);
    }
  }
  lanes_ = lane;
  bytes_ += bytes;
  if (left > 0) {  // `data` may be null if there are no bytes
    std::memcpy(rest_.data(), at, left);
  }
}

uint64_t Hasher::Finish() const {
  uint64_t digest = HashMix(seed_, bytes_);
  for (const uint64_t lane : lanes_) {
    digest = HashMix(digest, lane);
  }
  const unsigned char* at = rest_.data();
  size_t left = bytes_ % kBlockBytes;
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    digest = HashMix(digest, Load(at));
  }
  uint64_t tail = 0;
  std::memcpy(&tail, at, left);
  return HashMix(digest, tail);
}

uint64_t HashBytes(const void* data, size_t bytes, uint64_t seed) {
  Hasher hasher(seed);
  hasher.Update(data, bytes);
  return hasher.Finish();
}

}  // namespace elastic::internal
