#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "proto/local/frames.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/roster.h"
#include "tests/fuzz/fuzz_input.h"

// Frames of the agent-worker link, as a stranger may send them. The input is a list of frames; some
// are taken as they are, some get a right header, some are a roster's parts with a few bytes
// changed. Reading ends with a value or an error, and a roster that is taken is the one that its
// digest names.

namespace elastic::internal {
namespace {

using local::Frame;
using local::FrameKind;

std::span<const std::byte> AsBytes(std::span<const uint8_t> bytes) { return std::as_bytes(bytes); }

// Every kind with a body, whatever kind the frame says it is: the size alone must decide.
void ReadAll(std::span<const std::byte> frame) {
  const auto read = [frame]<class Body>(const Body&) {
    const auto body = local::BodyOf<Body>(frame);
    const bool fits = frame.size() == sizeof(local::FrameHeader) + sizeof(Body);
    if (body.ok() != fits) {
      Broken("a body of another size was taken, or one of the right size was not");
    }
  };
  read(local::Hello{});
  read(local::Ready{});
  read(local::Entered{});
  read(local::Accuse{});
  read(local::Finished{});
  read(local::Welcome{});
  read(local::Refused{});
  read(local::FinishRecorded{});
  read(local::OfferedAgain{});
  if (const auto ready = local::BodyOf<local::Ready>(frame); ready.ok()) {
    const auto endpoint = local::FromWire(ready->data);
    if (endpoint.ok() && endpoint->address.size() >= sizeof ready->data.address) {
      Broken("an address longer than its field");
    }
  }
}

Roster MakeRoster(FuzzInput& input) {
  Roster roster;
  roster.kind = input.Below(2) == 0 ? GenerationKind::kInstalled : GenerationKind::kPrepared;
  roster.parent = GenerationNumber{input.Take<uint32_t>()};
  roster.resume = local::FromWire(input.Take<local::WireHeld>());
  // Few entries mostly; up to three parts.
  const uint32_t wanted = input.Take<uint16_t>();
  const uint32_t entries =
      wanted % 8 != 7 ? wanted / 8 % 6 : wanted / 8 % (2 * local::kRosterPartEntriesMax + 3);
  const std::string host = input.Text(input.Below(64));
  for (uint32_t i = 0; i < entries; ++i) {
    RosterEntry entry;
    entry.role = i % 5 == 4 ? Role::kCopy : Role::kWorker;
    entry.incarnation = {AgentIncarnation{i % 7 + 1}, i};
    entry.rank = static_cast<int32_t>(i);
    entry.host = host.c_str();  // up to the first zero, as on the wire
    entry.data = {"127.0.0.1", static_cast<uint16_t>(i)};
    roster.entries.push_back(entry);
  }
  roster.id = {ServerIncarnation{input.Take<uint64_t>()}, GenerationNumber{input.Take<uint32_t>()},
               RosterDigest(roster)};
  return roster;
}

// The assembler's contract, whatever was added before.
void Add(local::RosterAssembler& assembler, std::span<const std::byte> frame) {
  const auto added = assembler.Add(frame);
  if (!added.ok() || !added->has_value()) {
    return;
  }
  const Roster& roster = **added;
  if (RosterDigest(roster) != roster.id.roster_digest ||
      roster.entries.size() > static_cast<size_t>(kRosterEntriesMax)) {
    Broken("a roster was taken that is not what its digest names");
  }
}

void AddRoster(local::RosterAssembler& assembler, FuzzInput& input) {
  const Roster roster = MakeRoster(input);
  std::vector<Frame> parts = local::RosterFrames(roster);
  const uint32_t changes = input.Below(4);
  for (uint32_t i = 0; i < changes; ++i) {
    Frame& part = parts[input.Take<uint8_t>() % parts.size()];
    part[input.Take<uint32_t>() % part.size()] ^= static_cast<std::byte>(input.Take<uint8_t>());
  }
  if (input.Below(4) == 0) {
    std::ranges::reverse(parts);
  }
  const bool untouched = changes == 0 && parts.size() == 1;
  for (const Frame& part : parts) {
    if (local::CheckFrame(part).ok()) {
      Add(assembler, part);
    }
  }
  // Nothing that came before may keep a whole roster from being taken.
  local::RosterAssembler fresh;
  for (local::RosterAssembler* reader : {&assembler, &fresh}) {
    const std::vector<Frame> whole = local::RosterFrames(roster);
    for (size_t i = 0; i < whole.size(); ++i) {
      const auto added = reader->Add(whole[i]);
      const bool last = i + 1 == whole.size();
      if (!added.ok() || added->has_value() != last || (last && !(**added == roster))) {
        Broken(untouched ? "a whole roster was not taken" : "a whole roster after a broken one");
      }
    }
  }
}

}  // namespace
}  // namespace elastic::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace elastic::internal;
  FuzzInput input(data, size);
  local::RosterAssembler assembler;
  while (!input.empty()) {
    switch (input.Below(3)) {
      case 0: {  // as it is
        const auto frame = AsBytes(input.Bytes(input.Take<uint16_t>()));
        const auto kind = local::CheckFrame(frame);
        if (!kind.ok() && kind.error().message().empty()) {
          Broken("an error without a text");
        }
        if (kind.ok()) {
          ReadAll(frame);
          Add(assembler, frame);
        }
        break;
      }
      case 1: {  // with a header that is right
        const auto kind = static_cast<FrameKind>(input.Take<uint8_t>());
        const auto body = input.Bytes(input.Take<uint16_t>());
        const Frame frame = local::MakeFrameFromBytes(kind, body.data(), body.size());
        ReadAll(frame);
        Add(assembler, frame);
        break;
      }
      default: AddRoster(assembler, input); break;
    }
  }
  return 0;
}
