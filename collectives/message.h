#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/types.h"
#include "rendezvous/base/agreement.h"

namespace elastic::internal {

enum class OperationKind : uint8_t {
  kAllReduce = 1,
  kBroadcast = 2,
  kAllGather = 3,
  kBarrier = 4,
  kCommit = 5,  // the agreement of a commit that no world collective of the program came before
  kReduceScatter = 6,
  kFinish = 7,  // no operation: this rank will make none any more
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
//   12     4    hash of the parts' sizes, 0 if all are equal
//   16     8    number of the operation in its communicator, from 1
//   24     8    bytes of the operation's input (allgather: of all parts)
//   32    48    agreement (agreement.h), zero in a broadcast
//
// All little-endian. What comes before the agreement is equal on all ranks.
struct MessageHeader {
  OperationKind kind = OperationKind::kBarrier;
  uint8_t type = 0;
  uint8_t op = 0;
  uint32_t root = 0;
  uint32_t parts = 0;
  uint64_t number = 0;
  uint64_t bytes = 0;
};
inline constexpr size_t kCallBytes = 32;
inline constexpr size_t kMessageHeaderBytes = kCallBytes + kAgreementBytes;
using MessageHeaderBytes = std::array<std::byte, kMessageHeaderBytes>;

MessageHeaderBytes Encode(const MessageHeader& header);
void PutAgreement(MessageHeaderBytes& bytes, const Agreement& agreement);
bool CarriesAgreement(const MessageHeaderBytes& bytes);  // false for bytes that are no header too
Agreement AgreementIn(const MessageHeaderBytes& bytes);
bool SameCall(const MessageHeaderBytes& a, const MessageHeaderBytes& b);
// `allreduce number 5 (f32, sum, 400 bytes)`; text for bytes that are no header too.
std::string DescribeHeader(const MessageHeaderBytes& bytes);

}  // namespace elastic::internal
