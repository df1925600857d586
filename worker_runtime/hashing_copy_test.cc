#include "worker_runtime/hashing_copy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace elastic::internal {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool Never() { return false; }

std::vector<std::byte> Pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 7);
  }
  return made;
}

size_t Padded(size_t bytes) {
  return (bytes + Hasher::kBlockBytes - 1) / Hasher::kBlockBytes * Hasher::kBlockBytes;
}

TEST_CASE("A digest of pieces is that of all bytes at once") {
  const auto bytes = Pattern(1000, 3);
  for (const size_t length :
       {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{999}, size_t{1000}}) {
    for (size_t cut = 0; cut <= length; cut += Hasher::kBlockBytes) {
      Hasher hasher(7);
      hasher.Update(bytes.data(), cut);
      hasher.Update(bytes.data() + cut, length - cut);
      REQUIRE(hasher.Finish() == HashBytes(bytes.data(), length, 7));
    }
  }
}

TEST_CASE("Every bit of the copied bytes shows in the digest") {
  auto bytes = Pattern(200, 1);
  const uint64_t before = HashBytes(bytes.data(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    REQUIRE(HashBytes(bytes.data(), bytes.size()) != before);
    bytes[i] ^= std::byte{0x10};
  }
}

TEST_CASE("Pieces are copied one behind the other, padded, and hashed as what was written") {
  // Also at odd addresses, and large enough for the way past the caches.
  for (const auto& sizes : std::vector<std::vector<size_t>>{
           {}, {0}, {1}, {64}, {100, 0, 3000}, {5 * kMiB + 3, 1, kMiB}}) {
    std::vector<std::vector<std::byte>> pieces;
    size_t room = 0;
    for (const size_t size : sizes) {
      pieces.push_back(Pattern(size + 1, size));
      room += Padded(size);
    }
    std::vector<std::byte> target(room, std::byte{0xFF});
    HashingCopy copy(target);
    for (const auto& piece : pieces) {
      REQUIRE(copy.Append(std::span(piece).subspan(1), Never));
    }
    REQUIRE(copy.Finish() == HashBytes(target.data(), target.size()));
    size_t at = 0;
    for (const auto& piece : pieces) {
      const size_t size = piece.size() - 1;
      REQUIRE(std::equal(piece.begin() + 1, piece.end(), target.begin() + at));
      REQUIRE(std::all_of(target.begin() + at + size, target.begin() + at + Padded(size),
                          [](std::byte b) { return b == std::byte{0}; }));
      at += Padded(size);
    }
  }
}

TEST_CASE("A copy past the caches has every byte and touches none beside it, at any address") {
  for (const size_t size : {size_t{0}, size_t{1}, 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 77}) {
    for (const size_t shift : {size_t{0}, size_t{1}, size_t{16}, size_t{63}}) {
      const auto from = Pattern(size + 3, shift);
      std::vector<std::byte> to(size + 128, std::byte{0xEE});
      const auto wanted = std::span(from).subspan(3);
      CopyPastCaches(to.data() + shift, wanted);
      REQUIRE(std::equal(wanted.begin(), wanted.end(), to.begin() + shift));
      const auto untouched = [](std::byte b) { return b == std::byte{0xEE}; };
      REQUIRE(std::all_of(to.begin(), to.begin() + shift, untouched));
      REQUIRE(std::all_of(to.begin() + shift + size, to.end(), untouched));
    }
  }
}

TEST_CASE("A copy and a digest end early within a megabyte of being told") {
  const auto bytes = Pattern(8 * kMiB, 5);
  for (int allowed = 0; allowed < 8; ++allowed) {
    int asked = 0;
    const EndEarly over = [&] { return asked++ == allowed; };
    std::vector<std::byte> target(bytes.size(), std::byte{0xEE});
    HashingCopy copy(target);
    REQUIRE_FALSE(copy.Append(bytes, over));
    const size_t copied = static_cast<size_t>(allowed) * kAskBytes;
    REQUIRE(std::equal(bytes.begin(), bytes.begin() + copied, target.begin()));
    REQUIRE(std::all_of(target.begin() + copied, target.end(),
                        [](std::byte b) { return b == std::byte{0xEE}; }));
    asked = 0;
    REQUIRE_FALSE(HashUnlessOver(bytes, over).has_value());
  }
  REQUIRE(HashUnlessOver(bytes, Never) == HashBytes(bytes.data(), bytes.size()));
  REQUIRE(HashUnlessOver({}, Never) == HashBytes(nullptr, 0));
}

}  // namespace
}  // namespace elastic::internal
