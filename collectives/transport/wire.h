#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/types.h"

namespace elastic::internal {

// The handshake of a data connection: the dialling side says who it is, whom it wants and in which
// generation; the accepting side answers before a byte of payload is used. Fixed sizes, so that
// nothing of a stranger's choice is ever allocated.
//
// Hello, 144 bytes, little-endian:
//   offset bytes
//     0     4   magic 'ECH1'
//     4     2   version, 1
//     6     1   purpose: 1 edge, 2 fetch
//     7     1   channel (edges), else 0
//     8     8   job nonce
//    16     8   generation: server incarnation
//    24     8   generation: roster digest
//    32     4   generation: number
//    36     8   from: agent incarnation, counter
//    44     8   to (edges), or whose state is wanted (fetch): agent incarnation, counter
//    52     1   bytes of the job id
//    53    64   job id, zero-filled
//   117     4   attempt: how often the caller has dialled this edge before
//   121    23   0
enum class Purpose : uint8_t { kEdge = 1, kFetch = 2 };

struct Hello {
  Purpose purpose = Purpose::kEdge;
  Channel channel = Channel::kMain;
  std::string job_id;
  uint64_t job_nonce = 0;
  GenerationId generation;
  WorkerIncarnation from;
  WorkerIncarnation to;
  uint32_t attempt = 0;
};
inline constexpr size_t kHelloBytes = 144;
using HelloBytes = std::array<std::byte, kHelloBytes>;
HelloBytes Encode(const Hello& hello);
std::optional<Hello> DecodeHello(const HelloBytes& bytes);

// Reply, 48 bytes: magic 'ECR1' (4), verdict (1), 0 (3), and for an offer the held state:
// generation number (4), commits (4), digest (8), step (8), bytes of the state (8); 0 (8).
enum class ReplyVerdict : uint8_t {
  kAccepted = 1,   // edge: it stands
  kOffered = 2,    // fetch: what follows a go-ahead
  kWrongJob = 3,   // job id or nonce
  kWrongPeer = 4,  // that worker is not (or no longer) here, or does not expect the caller
  kOverThere = 5,  // that generation is over or another one here
  kNoState = 6,    // fetch: nothing to serve
  kTooMany = 7,    // a limit of waiting hellos was reached
  kInUse = 8,      // edge: it stood, and the other side has used its mesh since
};
std::string_view Describe(ReplyVerdict verdict);

struct Reply {
  ReplyVerdict verdict = ReplyVerdict::kAccepted;
  Held held;
  uint64_t bytes = 0;
};
inline constexpr size_t kReplyBytes = 48;
using ReplyBytes = std::array<std::byte, kReplyBytes>;
ReplyBytes Encode(const Reply& reply);
std::optional<Reply> DecodeReply(const ReplyBytes& bytes);

// The one byte by which a fetch asks for the offered state.
inline constexpr std::byte kGoAhead{0x47};

}  // namespace elastic::internal
