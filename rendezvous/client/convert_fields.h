#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/status.h"
#include "rendezvous/base/time.h"

// Small pieces that the convert_*.cc files share. Not for others.
namespace elastic::internal {

google::protobuf::Duration ToProto(Duration duration);
// Errors: INVALID_ARGUMENT beyond what 64 bits of nanoseconds hold.
StatusOr<Duration> FromProto(const google::protobuf::Duration& proto, std::string_view field);

// proto3 refuses to parse strings that are not UTF-8, and a command line may hold any bytes; such
// bytes become `?`.
std::string Utf8(std::string_view text);

Status CheckRange(std::string_view field, int64_t value, int64_t min, int64_t max);
Status CheckHostName(std::string_view field, const std::string& name);

enum class Unspecified { kAllowed, kRefused };

// Our enums have the wire's numbers shifted by `offset`.
template <class Ours, class Theirs>
StatusOr<Ours> EnumFrom(Theirs value, bool (*known)(int), std::string_view field,
                        Unspecified unspecified = Unspecified::kRefused, int offset = 0) {
  const int number = static_cast<int>(value);
  if (!known(number) || (number == 0 && unspecified == Unspecified::kRefused)) {
    return InvalidArgumentError(std::string(field) + " is " + std::to_string(number) +
                                ", a value this version does not know");
  }
  return static_cast<Ours>(number - offset);
}
template <class Theirs, class Ours>
Theirs EnumTo(Ours value, int offset = 0) {
  return static_cast<Theirs>(static_cast<int>(value) + offset);
}

// Converts a repeated field whose elements may be wrong.
template <class Ours, class Theirs>
StatusOr<std::vector<Ours>> VectorFrom(const google::protobuf::RepeatedPtrField<Theirs>& protos,
                                       std::string_view field, int count_max) {
  RETURN_IF_ERROR(CheckRange(std::string(field) + " count", protos.size(), 0, count_max));
  std::vector<Ours> result;
  result.reserve(static_cast<size_t>(protos.size()));
  for (const Theirs& proto : protos) {
    StatusOr<Ours> item = FromProto(proto);
    if (!item.ok()) {
      return item.status();
    }
    result.push_back(std::move(*item));
  }
  return result;
}

}  // namespace elastic::internal
