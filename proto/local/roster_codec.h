#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/local/frames.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/roster.h"
#include "rendezvous/base/status.h"

namespace elastic::internal::local {

WireGeneration ToWire(const GenerationId& id);
GenerationId FromWire(const WireGeneration& wire);
WireHeld ToWire(const Held& held);
Held FromWire(const WireHeld& wire);
WireIncarnation ToWire(WorkerIncarnation incarnation);
WorkerIncarnation FromWire(WireIncarnation wire);
WireEndpoint ToWire(const Endpoint& endpoint);
StatusOr<Endpoint> FromWire(const WireEndpoint& wire);  // INVALID_ARGUMENT: not terminated

using Frame = std::vector<std::byte>;

// A whole frame: header and body.
template <class Body>
Frame MakeFrame(FrameKind kind, const Body& body);
Frame MakeFrame(FrameKind kind);
std::vector<Frame> RosterFrames(const Roster& roster);

// Checks magic, version, size and kind. Errors: INVALID_ARGUMENT.
StatusOr<FrameKind> CheckFrame(std::span<const std::byte> frame);
// The body of a checked frame. Errors: INVALID_ARGUMENT when the size does not match.
template <class Body>
StatusOr<Body> BodyOf(std::span<const std::byte> frame);

// Puts parts together; gives the roster with its last part. Errors: INVALID_ARGUMENT for a part
// that does not follow, an unknown kind, an unterminated name, more than 2 * kMembersMax entries
// (members and copies) or a wrong digest.
class RosterAssembler {
 public:
  StatusOr<std::optional<Roster>> Add(std::span<const std::byte> frame);

 private:
  Roster partial_;
  uint32_t expected_ = 0;
};

Frame MakeFrameFromBytes(FrameKind kind, const void* body, size_t bytes);
Status CopyBody(std::span<const std::byte> frame, void* body, size_t bytes);

template <class Body>
Frame MakeFrame(FrameKind kind, const Body& body) {
  return MakeFrameFromBytes(kind, &body, sizeof body);
}
template <class Body>
StatusOr<Body> BodyOf(std::span<const std::byte> frame) {
  Body body{};
  RETURN_IF_ERROR(CopyBody(frame, &body, sizeof body));
  return body;
}

}  // namespace elastic::internal::local
