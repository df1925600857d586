#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/types.h"

namespace elastic::internal {

enum class OperationKind : uint8_t {
  kAllReduce = 1,
  kBroadcast = 2,
  kAllGather = 3,
  kBarrier = 4,
  kMinPair = 5,
};

// What precedes the body of every message on an edge, so that ranks which do not make the same
// calls in the same order get an error that names both, not each other's bytes as numbers.
//
//   offset bytes
//    0     4    magic 'ECM1'
//    4     1    operation kind
//    5     1    data type, 0 if the operation has none
//    6     1    reduction, 0 if it has none
//    7     1    0
//    8     4    root, 0 if it has none
//   12     4    0
//   16     8    number of the operation in its communicator, from 1
//   24     8    bytes of the operation's input
//
// All little-endian.
struct MessageHeader {
  OperationKind kind = OperationKind::kBarrier;
  uint8_t type = 0;
  uint8_t op = 0;
  uint32_t root = 0;
  uint64_t number = 0;
  uint64_t bytes = 0;
};
inline constexpr size_t kMessageHeaderBytes = 32;
using MessageHeaderBytes = std::array<std::byte, kMessageHeaderBytes>;

MessageHeaderBytes Encode(const MessageHeader& header);
// `allreduce number 5 (f32, sum, 400 bytes)`; text for bytes that are no header too.
std::string DescribeHeader(const MessageHeaderBytes& bytes);

}  // namespace elastic::internal
