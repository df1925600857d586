#include "collectives/message.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rendezvous/base/log.h"

namespace elastic::internal {

static_assert(std::endian::native == std::endian::little, "wire format is little-endian");

namespace {

constexpr uint32_t kMagic = 0x314D4345;  // "ECM1"

std::string_view KindName(uint8_t kind) {
  switch (static_cast<OperationKind>(kind)) {
    case OperationKind::kAllReduce: return "allreduce";
    case OperationKind::kBroadcast: return "broadcast";
    case OperationKind::kAllGather: return "allgather";
    case OperationKind::kBarrier: return "barrier";
    case OperationKind::kCommit: return "commit";
    case OperationKind::kReduceScatter: return "reduce-scatter";
    case OperationKind::kFinish: return "finish";
  }
  return "unknown operation";
}

std::string_view TypeName(uint8_t type) {
  switch (static_cast<DataType>(type)) {
    case DataType::kFloat32: return "f32";
    case DataType::kFloat64: return "f64";
    case DataType::kInt64: return "i64";
    case DataType::kInt32: return "i32";
    case DataType::kUint8: return "u8";
  }
  return "unknown type";
}

std::string_view OpName(uint8_t op) {
  switch (static_cast<ReduceOp>(op)) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kAverage: return "average";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kProduct: return "product";
  }
  return "unknown reduction";
}

template <class T>
T Field(const MessageHeaderBytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void Put(MessageHeaderBytes& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

}  // namespace

MessageHeaderBytes Encode(const MessageHeader& header) {
  MessageHeaderBytes bytes{};
  Put(bytes, 0, kMagic);
  Put(bytes, 4, header.kind);
  Put(bytes, 5, header.type);
  Put(bytes, 6, header.op);
  Put(bytes, 8, header.root);
  Put(bytes, 12, header.parts);
  Put(bytes, 16, header.number);
  Put(bytes, 24, header.bytes);
  return bytes;
}

void PutAgreement(MessageHeaderBytes& bytes, const Agreement& agreement) {
  Put(bytes, kCallBytes, agreement);
}

bool CarriesAgreement(const MessageHeaderBytes& bytes) {
  return Field<uint32_t>(bytes, 0) == kMagic &&
         Field<uint8_t>(bytes, 4) != static_cast<uint8_t>(OperationKind::kBroadcast);
}

Agreement AgreementIn(const MessageHeaderBytes& bytes) {
  return Field<Agreement>(bytes, kCallBytes);
}

bool SameCall(const MessageHeaderBytes& a, const MessageHeaderBytes& b) {
  return std::equal(a.begin(), a.begin() + kCallBytes, b.begin());
}

std::string DescribeHeader(const MessageHeaderBytes& bytes) {
  if (Field<uint32_t>(bytes, 0) != kMagic) {
    return "something that is no collective (longer or shorter data than announced)";
  }
  const auto kind = Field<uint8_t>(bytes, 4);
  std::string text = StrCat(KindName(kind), " number ", Field<uint64_t>(bytes, 16), " (");
  if (kind == static_cast<uint8_t>(OperationKind::kAllReduce) ||
      kind == static_cast<uint8_t>(OperationKind::kReduceScatter)) {
    text +=
        StrCat(TypeName(Field<uint8_t>(bytes, 5)), ", ", OpName(Field<uint8_t>(bytes, 6)), ", ");
  }
  if (kind == static_cast<uint8_t>(OperationKind::kBroadcast)) {
    text += StrCat("root ", Field<uint32_t>(bytes, 8), ", ");
  }
  text += StrCat(Field<uint64_t>(bytes, 24), " bytes");
  if (const auto parts = Field<uint32_t>(bytes, 12); parts != 0) {
    text += StrCat(" in unequal parts (hash of their sizes ", parts, ")");
  }
  return text + ")";
}

}  // namespace elastic::internal
