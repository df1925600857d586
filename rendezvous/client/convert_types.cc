#include <algorithm>
#include <limits>

#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// Bytes of the UTF-8 sequence at `text`, or 0 if there is none (RFC 3629, section 4).
size_t SequenceBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) {
    return 0;
  }
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || no_character ? 0 : bytes;
}

}  // namespace

google::protobuf::Duration ToProto(Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(duration.count() / kNanosecondsPerSecond);
  proto.set_nanos(static_cast<int32_t>(duration.count() % kNanosecondsPerSecond));
  return proto;
}

StatusOr<Duration> FromProto(const google::protobuf::Duration& proto, std::string_view field) {
  constexpr int64_t kSecondsMax = std::numeric_limits<int64_t>::max() / kNanosecondsPerSecond - 1;
  RETURN_IF_ERROR(CheckRange(field, proto.seconds(), -kSecondsMax, kSecondsMax));
  RETURN_IF_ERROR(
      CheckRange(field, proto.nanos(), -kNanosecondsPerSecond + 1, kNanosecondsPerSecond - 1));
  return Duration(proto.seconds() * kNanosecondsPerSecond + proto.nanos());
}

std::string Utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = SequenceBytes(text);
    if (bytes == 0) {
      result += '?';
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

Status CheckRange(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max) {
    return InvalidArgumentError(std::string(field) + " is " + std::to_string(value) +
                                ", allowed are " + std::to_string(min) + " to " +
                                std::to_string(max));
  }
  return OkStatus();
}

Status CheckHostName(std::string_view field, const std::string& name) {
  if (name.empty() || name.size() > kHostNameBytesMax) {
    return InvalidArgumentError(std::string(field) + " has " + std::to_string(name.size()) +
                                " bytes, allowed are 1 to " + std::to_string(kHostNameBytesMax));
  }
  return OkStatus();
}

v1::GenerationId ToProto(const GenerationId& id) {
  v1::GenerationId proto;
  proto.set_server_incarnation(id.server.value);
  proto.set_number(id.number.value);
  proto.set_roster_digest(id.roster_digest);
  return proto;
}

GenerationId FromProto(const v1::GenerationId& proto) {
  return {ServerIncarnation{proto.server_incarnation()}, GenerationNumber{proto.number()},
          proto.roster_digest()};
}

v1::WorkerIncarnation ToProto(WorkerIncarnation id) {
  v1::WorkerIncarnation proto;
  proto.set_agent(id.agent.value);
  proto.set_counter(id.counter);
  return proto;
}

WorkerIncarnation FromProto(const v1::WorkerIncarnation& proto) {
  return {AgentIncarnation{proto.agent()}, proto.counter()};
}

v1::Held ToProto(const Held& held) {
  v1::Held proto;
  proto.mutable_version()->set_generation(held.version.generation.value);
  proto.mutable_version()->set_commits(held.version.commits);
  proto.set_digest(held.digest);
  proto.set_step(held.step);
  return proto;
}

StatusOr<Held> FromProto(const v1::Held& proto) {
  RETURN_IF_ERROR(CheckRange("held.version.commits", proto.version().commits(), 0,
                             int64_t{CommitWord::kCommitsMax}));
  return Held{
      .version = {GenerationNumber{proto.version().generation()}, proto.version().commits()},
      .digest = proto.digest(),
      .step = proto.step()};
}

v1::Endpoint ToProto(const Endpoint& endpoint) {
  v1::Endpoint proto;
  proto.set_address(Utf8(endpoint.address));
  proto.set_port(endpoint.port);
  return proto;
}

StatusOr<Endpoint> FromProto(const v1::Endpoint& proto) {
  RETURN_IF_ERROR(CheckRange("endpoint.port", proto.port(), 0, 65535));
  return Endpoint{proto.address(), static_cast<uint16_t>(proto.port())};
}

v1::CommitWord ToProto(const CommitWord& word) {
  v1::CommitWord proto;
  proto.set_generation(word.generation.value);
  proto.set_commits(word.commits);
  proto.set_committing(word.committing);
  proto.set_fenced(word.fenced);
  return proto;
}

StatusOr<CommitWord> FromProto(const v1::CommitWord& proto) {
  RETURN_IF_ERROR(CheckRange("word.commits", proto.commits(), 0, int64_t{CommitWord::kCommitsMax}));
  return CommitWord{GenerationNumber{proto.generation()}, proto.commits(), proto.committing(),
                    proto.fenced()};
}

v1::Mark ToProto(const Mark& mark) {
  v1::Mark proto;
  proto.set_generation(mark.generation.value);
  *proto.mutable_dead() = ToProto(mark.dead);
  return proto;
}

Mark FromProto(const v1::Mark& proto) {
  return {GenerationNumber{proto.generation()}, FromProto(proto.dead())};
}

v1::FinishRecord ToProto(const FinishRecord& record) {
  v1::FinishRecord proto;
  *proto.mutable_generation() = ToProto(record.generation);
  *proto.mutable_final_state() = ToProto(record.final_state);
  return proto;
}

StatusOr<FinishRecord> FromProto(const v1::FinishRecord& proto) {
  FinishRecord record{.generation = FromProto(proto.generation())};
  ASSIGN_OR_RETURN(record.final_state, FromProto(proto.final_state()));
  return record;
}

}  // namespace elastic::internal
