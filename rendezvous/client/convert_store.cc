#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

v1::StoreKey ToProto(const StoreKey& key) {
  v1::StoreKey proto;
  *proto.mutable_generation() = ToProto(key.generation);
  proto.set_name(key.name);
  return proto;
}

StatusOr<StoreKey> FromProto(const v1::StoreKey& proto) {
  RETURN_IF_ERROR(CheckRange("store_key.name bytes", std::ssize(proto.name()), 1,
                             static_cast<int64_t>(kStoreKeyBytesMax)));
  return StoreKey{.generation = FromProto(proto.generation()), .name = proto.name()};
}

v1::StoreEntry ToProto(const StorePut& put) {
  v1::StoreEntry proto;
  *proto.mutable_key() = ToProto(put.key);
  proto.set_value(put.value);
  return proto;
}

StatusOr<StorePut> FromProto(const v1::StoreEntry& proto) {
  StorePut put;
  ASSIGN_OR_RETURN(put.key, FromProto(proto.key()));
  RETURN_IF_ERROR(CheckRange("store_entry.value bytes", std::ssize(proto.value()), 0,
                             static_cast<int64_t>(kStoreValueBytesMax)));
  put.value = proto.value();
  return put;
}

v1::StoreAnswer ToProto(const StoreAnswer& answer) {
  v1::StoreAnswer proto;
  *proto.mutable_key() = ToProto(answer.key);
  proto.set_digest(answer.digest);
  proto.set_verdict(EnumTo<v1::StoreVerdict>(answer.verdict));
  return proto;
}

StatusOr<StoreAnswer> FromProto(const v1::StoreAnswer& proto) {
  StoreAnswer answer;
  ASSIGN_OR_RETURN(answer.key, FromProto(proto.key()));
  answer.digest = proto.digest();
  ASSIGN_OR_RETURN(answer.verdict, EnumFrom<StoreVerdict>(proto.verdict(), v1::StoreVerdict_IsValid,
                                                          "store_answer.verdict"));
  return answer;
}

}  // namespace elastic::internal
