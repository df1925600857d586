#include "proto/local/store_codec.h"

#include <cstring>

#include "rendezvous/base/limits.h"

namespace elastic::internal::local {

namespace {

template <class Body>
Frame FrameWithTail(FrameKind kind, const Body& body, std::string_view first,
                    std::string_view second = {}) {
  std::string bytes(sizeof body, '\0');
  std::memcpy(bytes.data(), &body, sizeof body);
  bytes.append(first).append(second);
  return MakeFrameFromBytes(kind, bytes.data(), bytes.size());
}

// The fixed part; what follows it in the frame is `tail`.
template <class Body>
StatusOr<Body> FixedPart(std::span<const std::byte> frame, std::string_view& tail) {
  constexpr size_t kFixed = sizeof(FrameHeader) + sizeof(Body);
  if (frame.size() < kFixed) {
    return InvalidArgumentError("a put or get frame is shorter than its fixed fields");
  }
  Body body{};
  std::memcpy(&body, frame.data() + sizeof(FrameHeader), sizeof body);
  tail = {reinterpret_cast<const char*>(frame.data()) + kFixed, frame.size() - kFixed};
  return body;
}

Status CheckSizes(size_t key_bytes, size_t value_bytes, size_t tail_bytes) {
  if (key_bytes < 1 || key_bytes > kStoreKeyBytesMax || value_bytes > kStoreValueBytesMax ||
      key_bytes + value_bytes != tail_bytes) {
    return InvalidArgumentError("a put or get frame has a key of " + std::to_string(key_bytes) +
                                " and a value of " + std::to_string(value_bytes) + " bytes in " +
                                std::to_string(tail_bytes));
  }
  return OkStatus();
}

}  // namespace

Frame PutFrame(const PutCall& call) {
  const StoreKey& key = call.put.key;
  const Put body{ToWire(key.generation), call.request, static_cast<uint32_t>(key.name.size()),
                 static_cast<uint32_t>(call.put.value.size()), 0};
  return FrameWithTail(FrameKind::kPut, body, key.name, call.put.value);
}

Frame GetFrame(const GetCall& call) {
  const Get body{ToWire(call.key.generation), call.request,
                 static_cast<uint32_t>(call.key.name.size())};
  return FrameWithTail(FrameKind::kGet, body, call.key.name);
}

Frame StoreReplyFrame(const StoreReply& reply) {
  const StoreAnswer body{reply.request, static_cast<uint32_t>(reply.code),
                         static_cast<uint32_t>(reply.bytes.size()), 0};
  return FrameWithTail(FrameKind::kStoreAnswer, body, reply.bytes);
}

StatusOr<PutCall> PutOf(std::span<const std::byte> frame) {
  std::string_view tail;
  ASSIGN_OR_RETURN(const Put body, FixedPart<Put>(frame, tail));
  RETURN_IF_ERROR(CheckSizes(body.key_bytes, body.value_bytes, tail.size()));
  return PutCall{.request = body.request,
                 .put = {.key = {.generation = FromWire(body.generation),
                                 .name = std::string(tail.substr(0, body.key_bytes))},
                         .value = std::string(tail.substr(body.key_bytes))}};
}

StatusOr<GetCall> GetOf(std::span<const std::byte> frame) {
  std::string_view tail;
  ASSIGN_OR_RETURN(const Get body, FixedPart<Get>(frame, tail));
  RETURN_IF_ERROR(CheckSizes(body.key_bytes, 0, tail.size()));
  return GetCall{.request = body.request,
                 .key = {.generation = FromWire(body.generation), .name = std::string(tail)}};
}

StatusOr<StoreReply> StoreReplyOf(std::span<const std::byte> frame) {
  std::string_view tail;
  ASSIGN_OR_RETURN(const StoreAnswer body, FixedPart<StoreAnswer>(frame, tail));
  if (body.bytes != tail.size()) {
    return InvalidArgumentError("a put or get answer says " + std::to_string(body.bytes) +
                                " bytes and has " + std::to_string(tail.size()));
  }
  return StoreReply{.request = body.request,
                    .code = static_cast<StatusCode>(body.code),
                    .bytes = std::string(tail)};
}

}  // namespace elastic::internal::local
