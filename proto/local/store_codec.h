#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proto/local/roster_codec.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal::local {

// Frames of put and get. Reading one: INVALID_ARGUMENT for sizes that do not match the frame's, or
// over the limits of rendezvous/base/limits.h.

struct PutCall {
  uint32_t request = 0;
  StorePut put;
};
struct GetCall {
  uint32_t request = 0;
  StoreKey key;
};
struct StoreReply {
  uint32_t request = 0;
  StatusCode code = StatusCode::kOk;
  std::string bytes;  // the value of a get that is OK, else the error's text
};

Frame PutFrame(const PutCall& call);
Frame GetFrame(const GetCall& call);
Frame StoreReplyFrame(const StoreReply& reply);

StatusOr<PutCall> PutOf(std::span<const std::byte> frame);
StatusOr<GetCall> GetOf(std::span<const std::byte> frame);
StatusOr<StoreReply> StoreReplyOf(std::span<const std::byte> frame);

}  // namespace elastic::internal::local
