#include "proto/local/roster_codec.h"

#include <algorithm>
#include <cstring>

#include "rendezvous/base/limits.h"

namespace elastic::internal::local {

namespace {

template <size_t N>
void CopyText(char (&target)[N], const std::string& text) {
  const size_t bytes = std::min(text.size(), N - 1);
  std::memcpy(target, text.data(), bytes);
  std::memset(target + bytes, 0, N - bytes);
}

template <size_t N>
StatusOr<std::string> TextOf(const char (&source)[N]) {
  const void* end = std::memchr(source, 0, N);
  if (end == nullptr) {
    return InvalidArgumentError("a name in a local frame is not terminated");
  }
  return std::string(source, static_cast<const char*>(end));
}

RosterWireEntry EntryToWire(const RosterEntry& entry) {
  RosterWireEntry wire{};
  wire.role = static_cast<uint8_t>(entry.role);
  wire.holds_resume = entry.holds_resume ? 1 : 0;
  wire.rank = entry.rank;
  wire.previous_rank = entry.previous_rank;
  wire.slot = entry.slot;
  wire.incarnation = ToWire(entry.incarnation);
  wire.data = ToWire(entry.data);
  CopyText(wire.host, entry.host);
  return wire;
}

StatusOr<RosterEntry> EntryFromWire(const RosterWireEntry& wire) {
  if (wire.role != static_cast<uint8_t>(Role::kWorker) &&
      wire.role != static_cast<uint8_t>(Role::kCopy)) {
    return InvalidArgumentError("a roster entry has an unknown role");
  }
  RosterEntry entry{.role = static_cast<Role>(wire.role),
                    .incarnation = FromWire(wire.incarnation),
                    .rank = wire.rank,
                    .previous_rank = wire.previous_rank,
                    .host = {},
                    .slot = wire.slot,
                    .data = {},
                    .holds_resume = wire.holds_resume != 0};
  ASSIGN_OR_RETURN(entry.host, TextOf(wire.host));
  ASSIGN_OR_RETURN(entry.data, FromWire(wire.data));
  return entry;
}

}  // namespace

static_assert(kJobIdBytes == kJobIdBytesMax + 1);

WireGeneration ToWire(const GenerationId& id) {
  return {id.server.value, id.roster_digest, id.number.value, 0};
}
GenerationId FromWire(const WireGeneration& wire) {
  return {{wire.server}, {wire.number}, wire.digest};
}
WireHeld ToWire(const Held& held) {
  return {held.version.generation.value, held.version.commits, held.digest, held.step};
}
Held FromWire(const WireHeld& wire) {
  return {{{wire.generation}, wire.commits}, wire.digest, wire.step};
}
WireIncarnation ToWire(WorkerIncarnation incarnation) {
  return {incarnation.agent.value, incarnation.counter};
}
WorkerIncarnation FromWire(WireIncarnation wire) { return {{wire.agent}, wire.counter}; }

WireEndpoint ToWire(const Endpoint& endpoint) {
  WireEndpoint wire{};
  CopyText(wire.address, endpoint.address);
  wire.port = endpoint.port;
  return wire;
}
StatusOr<Endpoint> FromWire(const WireEndpoint& wire) {
  Endpoint endpoint;
  ASSIGN_OR_RETURN(endpoint.address, TextOf(wire.address));
  endpoint.port = wire.port;
  return endpoint;
}

Frame MakeFrameFromBytes(FrameKind kind, const void* body, size_t bytes) {
  const FrameHeader header{kFrameMagic, kVersionMax, static_cast<uint16_t>(kind),
                           static_cast<uint32_t>(sizeof(FrameHeader) + bytes), 0};
  Frame frame(header.bytes);
  std::memcpy(frame.data(), &header, sizeof header);
  if (bytes != 0) {
    std::memcpy(frame.data() + sizeof header, body, bytes);
  }
  return frame;
}

Frame MakeFrame(FrameKind kind) { return MakeFrameFromBytes(kind, nullptr, 0); }

std::vector<Frame> RosterFrames(const Roster& roster) {
  std::vector<Frame> frames;
  const auto total = static_cast<uint32_t>(roster.entries.size());
  uint32_t first = 0;
  do {
    const uint32_t count = std::min<uint32_t>(total - first, kRosterPartEntriesMax);
    RosterPart part{ToWire(roster.id),
                    ToWire(roster.resume),
                    roster.parent.value,
                    static_cast<uint8_t>(roster.kind),
                    {},
                    first,
                    count,
                    total,
                    0};
    std::vector<std::byte> body(sizeof part + count * sizeof(RosterWireEntry));
    std::memcpy(body.data(), &part, sizeof part);
    for (uint32_t i = 0; i < count; ++i) {
      const RosterWireEntry wire = EntryToWire(roster.entries[first + i]);
      std::memcpy(body.data() + sizeof part + i * sizeof wire, &wire, sizeof wire);
    }
    frames.push_back(MakeFrameFromBytes(FrameKind::kRosterPart, body.data(), body.size()));
    first += count;
  } while (first < total);
  return frames;
}

StatusOr<FrameKind> CheckFrame(std::span<const std::byte> frame) {
  FrameHeader header{};
  if (frame.size() < sizeof header) {
    return InvalidArgumentError("a local frame is shorter than its header");
  }
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.magic != kFrameMagic || header.bytes != frame.size()) {
    return InvalidArgumentError("a local frame has a wrong magic number or size");
  }
  if (header.version < kVersionMin || header.version > kVersionMax) {
    return FailedPreconditionError(
        "the other side of the agent-worker link speaks protocol version " +
        std::to_string(header.version) + ", this one " + std::to_string(kVersionMin) + " to " +
        std::to_string(kVersionMax) + ": rebuild the program or upgrade elastic-run");
  }
  const auto kind = static_cast<FrameKind>(header.kind);
  if (!IsFromWorker(kind) && !IsFromAgent(kind)) {
    return InvalidArgumentError("a local frame has the unknown kind " +
                                std::to_string(header.kind));
  }
  return kind;
}

Status CopyBody(std::span<const std::byte> frame, void* body, size_t bytes) {
  if (frame.size() != sizeof(FrameHeader) + bytes) {
    return InvalidArgumentError("a local frame's body has " +
                                std::to_string(frame.size() - sizeof(FrameHeader)) +
                                " bytes, want " + std::to_string(bytes));
  }
  std::memcpy(body, frame.data() + sizeof(FrameHeader), bytes);
  return OkStatus();
}

StatusOr<std::optional<Roster>> RosterAssembler::Add(std::span<const std::byte> frame) {
  RosterPart part{};
  constexpr size_t kFixed = sizeof(FrameHeader) + sizeof part;
  if (frame.size() < kFixed) {
    return InvalidArgumentError("a roster part is shorter than its fixed fields");
  }
  std::memcpy(&part, frame.data() + sizeof(FrameHeader), sizeof part);
  if (part.first == 0) {
    partial_ = Roster{.id = FromWire(part.generation),
                      .kind = static_cast<GenerationKind>(part.kind),
                      .parent = {part.parent},
                      .resume = FromWire(part.resume),
                      .entries = {}};
    expected_ = 0;
  }
  if (partial_.kind != GenerationKind::kInstalled && partial_.kind != GenerationKind::kPrepared) {
    return InvalidArgumentError("a roster has the unknown kind " + std::to_string(part.kind));
  }
  const bool sizes_fit = part.count <= kRosterPartEntriesMax && part.total <= kMembersMax * 2 &&
                         part.first + part.count <= part.total &&
                         frame.size() == kFixed + part.count * sizeof(RosterWireEntry);
  if (!sizes_fit || part.first != expected_ || partial_.id != FromWire(part.generation)) {
    return InvalidArgumentError("a roster part does not follow the one before");
  }
  for (uint32_t i = 0; i < part.count; ++i) {
    RosterWireEntry wire{};
    std::memcpy(&wire, frame.data() + kFixed + i * sizeof wire, sizeof wire);
    ASSIGN_OR_RETURN(RosterEntry entry, EntryFromWire(wire));
    partial_.entries.push_back(std::move(entry));
  }
  expected_ += part.count;
  if (expected_ < part.total) {
    return std::optional<Roster>();
  }
  if (RosterDigest(partial_) != partial_.id.roster_digest) {
    return InvalidArgumentError("a roster does not match its digest");
  }
  return std::optional<Roster>(std::move(partial_));
}

}  // namespace elastic::internal::local
