#include "collectives/transport/wire.h"

#include <bit>
#include <cstring>

#include "collectives/limits.h"
#include "rendezvous/base/check.h"

namespace elastic::internal {

static_assert(std::endian::native == std::endian::little, "wire format is little-endian");

namespace {

constexpr uint32_t kHelloMagic = 0x31484345;  // "ECH1"
constexpr uint32_t kReplyMagic = 0x31524345;  // "ECR1"
constexpr uint16_t kVersion = 1;
constexpr size_t kJobIdOffset = 53;
constexpr size_t kAttemptOffset = kJobIdOffset + kJobIdBytesMax;
static_assert(kAttemptOffset + sizeof(uint32_t) <= kHelloBytes);

template <class Bytes, class T>
void Put(Bytes& bytes, size_t offset, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T, class Bytes>
T Get(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class Bytes>
void PutWorker(Bytes& bytes, size_t offset, WorkerIncarnation worker) {
  Put(bytes, offset, worker.agent.value);
  Put(bytes, offset + 4, worker.counter);
}

template <class Bytes>
WorkerIncarnation GetWorker(const Bytes& bytes, size_t offset) {
  return {.agent = {Get<uint32_t>(bytes, offset)}, .counter = Get<uint32_t>(bytes, offset + 4)};
}

}  // namespace

HelloBytes Encode(const Hello& hello) {
  ELASTIC_CHECK(hello.job_id.size() <= kJobIdBytesMax);
  HelloBytes bytes{};
  Put(bytes, 0, kHelloMagic);
  Put(bytes, 4, kVersion);
  Put(bytes, 6, hello.purpose);
  Put(bytes, 7, hello.purpose == Purpose::kEdge ? static_cast<uint8_t>(hello.channel) : uint8_t{0});
  Put(bytes, 8, hello.job_nonce);
  Put(bytes, 16, hello.generation.server.value);
  Put(bytes, 24, hello.generation.roster_digest);
  Put(bytes, 32, hello.generation.number.value);
  PutWorker(bytes, 36, hello.from);
  PutWorker(bytes, 44, hello.to);
  Put(bytes, 52, static_cast<uint8_t>(hello.job_id.size()));
  std::memcpy(bytes.data() + kJobIdOffset, hello.job_id.data(), hello.job_id.size());
  Put(bytes, kAttemptOffset, hello.attempt);
  return bytes;
}

std::optional<Hello> DecodeHello(const HelloBytes& bytes) {
  const auto purpose = Get<uint8_t>(bytes, 6);
  const auto channel = Get<uint8_t>(bytes, 7);
  const auto id_bytes = Get<uint8_t>(bytes, 52);
  const bool known = Get<uint32_t>(bytes, 0) == kHelloMagic && Get<uint16_t>(bytes, 4) == kVersion;
  const bool edge = purpose == static_cast<uint8_t>(Purpose::kEdge) &&
                    channel >= static_cast<uint8_t>(Channel::kMain) &&
                    channel < static_cast<uint8_t>(Channel::kCreated) + kCreatedCommunicatorsMax;
  const bool fetch = purpose == static_cast<uint8_t>(Purpose::kFetch) && channel == 0;
  if (!known || !(edge || fetch) || id_bytes > kJobIdBytesMax) {
    return std::nullopt;
  }
  Hello hello;
  hello.purpose = static_cast<Purpose>(purpose);
  hello.channel = edge ? static_cast<Channel>(channel) : Channel::kMain;
  hello.job_nonce = Get<uint64_t>(bytes, 8);
  hello.generation = {.server = {Get<uint64_t>(bytes, 16)},
                      .number = {Get<uint32_t>(bytes, 32)},
                      .roster_digest = Get<uint64_t>(bytes, 24)};
  hello.from = GetWorker(bytes, 36);
  hello.to = GetWorker(bytes, 44);
  hello.job_id.assign(reinterpret_cast<const char*>(bytes.data()) + kJobIdOffset, id_bytes);
  hello.attempt = Get<uint32_t>(bytes, kAttemptOffset);
  return hello;
}

std::string_view Describe(ReplyVerdict verdict) {
  switch (verdict) {
    case ReplyVerdict::kAccepted: return "accepted";
    case ReplyVerdict::kOffered: return "offered";
    case ReplyVerdict::kWrongJob: return "it belongs to another job";
    case ReplyVerdict::kWrongPeer: return "it is another worker, or does not expect this one";
    case ReplyVerdict::kOverThere: return "that generation is over there";
    case ReplyVerdict::kNoState: return "it does not hold that state";
    case ReplyVerdict::kTooMany: return "too many connections wait there";
    case ReplyVerdict::kInUse: return "that connection was made before and is in use there";
  }
  return "unknown verdict";
}

ReplyBytes Encode(const Reply& reply) {
  ReplyBytes bytes{};
  Put(bytes, 0, kReplyMagic);
  Put(bytes, 4, reply.verdict);
  Put(bytes, 8, reply.held.version.generation.value);
  Put(bytes, 12, reply.held.version.commits);
  Put(bytes, 16, reply.held.digest);
  Put(bytes, 24, reply.held.step);
  Put(bytes, 32, reply.bytes);
  return bytes;
}

std::optional<Reply> DecodeReply(const ReplyBytes& bytes) {
  const auto verdict = Get<uint8_t>(bytes, 4);
  if (Get<uint32_t>(bytes, 0) != kReplyMagic ||
      verdict < static_cast<uint8_t>(ReplyVerdict::kAccepted) ||
      verdict > static_cast<uint8_t>(ReplyVerdict::kInUse)) {
    return std::nullopt;
  }
  Reply reply;
  reply.verdict = static_cast<ReplyVerdict>(verdict);
  reply.held.version = {.generation = {Get<uint32_t>(bytes, 8)},
                        .commits = Get<uint32_t>(bytes, 12)};
  reply.held.digest = Get<uint64_t>(bytes, 16);
  reply.held.step = Get<uint64_t>(bytes, 24);
  reply.bytes = Get<uint64_t>(bytes, 32);
  if (reply.bytes > kStateBytesMax) {
    return std::nullopt;
  }
  return reply;
}

}  // namespace elastic::internal
