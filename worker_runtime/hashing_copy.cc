#include "worker_runtime/hashing_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace elastic::internal {

namespace {

// Stays in the first cache between its hashing and its copying.
constexpr size_t kChunkBytes = size_t{16} << 10;
// Smaller copies stay in the caches whatever is done.
constexpr size_t kPastCachesBytesMin = size_t{4} << 20;

static_assert(kAskBytes % kChunkBytes == 0 && kChunkBytes % Hasher::kBlockBytes == 0);

constexpr size_t kLineBytes = 64;

// Whole lines only: `bytes` is a multiple of kLineBytes, `to` aligned to 16 bytes. Stores past the
// caches are not ordered with those that follow until StoresAreSeen.
void CopyLines(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__)
  for (size_t at = 0; at < bytes; at += sizeof(__m128i)) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
  }
#else
  std::memcpy(to, from, bytes);
#endif
}

void StoresAreSeen() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

static_assert(kChunkBytes % kLineBytes == 0 && Hasher::kBlockBytes % kLineBytes == 0);

}  // namespace

std::optional<uint64_t> HashUnlessOver(std::span<const std::byte> memory, const EndEarly& over) {
  Hasher hasher;
  for (size_t at = 0; at < memory.size(); at += kAskBytes) {
    if (over()) {
      return std::nullopt;
    }
    const auto part = memory.subspan(at, std::min(kAskBytes, memory.size() - at));
    hasher.Update(part.data(), part.size());
  }
  return hasher.Finish();
}

HashingCopy::HashingCopy(std::span<std::byte> target)
    : at_(target.data()), past_caches_(target.size() >= kPastCachesBytesMin) {}

bool HashingCopy::Append(std::span<const std::byte> piece, const EndEarly& over) {
  const size_t whole = piece.size() / Hasher::kBlockBytes * Hasher::kBlockBytes;
  for (size_t at = 0; at < whole; at += kChunkBytes) {
    if (at % kAskBytes == 0 && over()) {
      return false;
    }
    CopyChunk(piece.subspan(at, std::min(kChunkBytes, whole - at)));
  }
  if (whole < piece.size()) {
    std::array<std::byte, Hasher::kBlockBytes> rest{};
    std::ranges::copy(piece.subspan(whole), rest.begin());
    CopyChunk(rest);
  }
  return true;
}

void HashingCopy::CopyChunk(std::span<const std::byte> chunk) {
  hasher_.Update(chunk.data(), chunk.size());
  if (past_caches_) {
    CopyLines(at_, chunk.data(), chunk.size());
  } else {
    std::memcpy(at_, chunk.data(), chunk.size());
  }
  at_ += chunk.size();
}

uint64_t HashingCopy::Finish() {
  StoresAreSeen();
  return hasher_.Finish();
}

void CopyPastCaches(std::byte* to, std::span<const std::byte> from) {
  if (from.size() < kPastCachesBytesMin) {
    std::ranges::copy(from, to);
    return;
  }
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kLineBytes;
  const size_t lines = (from.size() - head) / kLineBytes * kLineBytes;
  std::memcpy(to, from.data(), head);
  CopyLines(to + head, from.data() + head, lines);
  const auto tail = from.subspan(head + lines);
  std::ranges::copy(tail, to + head + lines);
  StoresAreSeen();
}

}  // namespace elastic::internal
