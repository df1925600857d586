#pragma once

#include <cstdint>

#include "rendezvous/base/limits.h"

namespace elastic::internal::local {

// Frames of the agent-worker link, protocol version 1: one frame is one message of a SOCK_SEQPACKET
// Unix socket, a FrameHeader followed by the struct that belongs to its kind. Fixed layout, little
// endian, text NUL-terminated. Descriptors travel with WELCOME by SCM_RIGHTS in the order page,
// state, bell. A reader refuses other magics, versions outside [kVersionMin, kVersionMax], unknown
// kinds and sizes that do not match.

inline constexpr uint32_t kFrameMagic = 0x31464C45;  // "ELF1"
inline constexpr uint16_t kVersionMin = 1;
inline constexpr uint16_t kVersionMax = 1;
inline constexpr int kJobIdBytes = kJobIdBytesMax + 1;
inline constexpr int kAddressBytes = 48;
inline constexpr int kHostBytes = 256;
inline constexpr int kMessageBytes = 512;
inline constexpr int kRosterPartEntriesMax = 256;

enum class FrameKind : uint16_t {
  kUnspecified = 0,
  // worker -> agent
  kHello = 1,
  kReady = 2,
  kEntered = 3,
  kAccuse = 4,
  kFinished = 5,
  kWordSettled = 6,
  kLeaving = 7,
  kPut = 8,
  kGet = 9,
  kProgramError = 13,
  // agent -> worker
  kWelcome = 32,
  kRefused = 33,
  kRosterPart = 34,
  kFinishRecorded = 35,
  kLeave = 36,
  kOfferedAgain = 37,
  kStoreAnswer = 38,
  kStopWanted = 44,
};

constexpr bool IsFromWorker(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
    case FrameKind::kReady:
    case FrameKind::kEntered:
    case FrameKind::kAccuse:
    case FrameKind::kFinished:
    case FrameKind::kWordSettled:
    case FrameKind::kLeaving:
    case FrameKind::kPut:
    case FrameKind::kGet:
    case FrameKind::kProgramError: return true;
    default: return false;
  }
}
constexpr bool IsFromAgent(FrameKind kind) {
  switch (kind) {
    case FrameKind::kWelcome:
    case FrameKind::kRefused:
    case FrameKind::kRosterPart:
    case FrameKind::kFinishRecorded:
    case FrameKind::kLeave:
    case FrameKind::kOfferedAgain:
    case FrameKind::kStoreAnswer:
    case FrameKind::kStopWanted: return true;
    default: return false;
  }
}

struct FrameHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint32_t bytes;  // of the whole frame, header included
  uint32_t reserved;
};

struct WireGeneration {
  uint64_t server;
  uint64_t digest;
  uint32_t number;
  uint32_t reserved;
};
struct WireIncarnation {
  uint32_t agent;
  uint32_t counter;
};
struct WireHeld {
  uint32_t generation;
  uint32_t commits;
  uint64_t digest;
  uint64_t step;
};
struct WireEndpoint {
  char address[kAddressBytes];
  uint16_t port;
  uint16_t reserved[3];
};

// First frame of a worker. The agent checks the peer's credentials: same user, and a descendant of
// the slot's process, which also tells it the incarnation.
struct Hello {
  uint16_t version_min;
  uint16_t version_max;
  uint32_t reserved;
  char job_id[kJobIdBytes];
};
// Declares readiness: from now on the worker may be put into a generation.
struct Ready {
  WireEndpoint data;
};
struct Entered {
  WireGeneration generation;
};
struct Accuse {
  WireGeneration generation;
  WireIncarnation accused;
};
struct Finished {
  WireGeneration generation;
  WireHeld state;
};
// An error that every life of this program would make again: the job is to end with it.
struct ProgramError {
  char message[kMessageBytes];
};
// kWordSettled and kLeaving have no body; kLeave and kStopWanted neither.

// Put and get in the generation that the worker is in; `request` returns in the answer.
struct Put {
  WireGeneration generation;
  uint32_t request;
  uint32_t key_bytes;
  uint32_t value_bytes;
  uint32_t reserved;
  // char key[key_bytes]; char value[value_bytes];
};
struct Get {
  WireGeneration generation;
  uint32_t request;
  uint32_t key_bytes;
  // char key[key_bytes];
};
struct StoreAnswer {
  uint32_t request;
  uint32_t code;   // enum StatusCode of rendezvous/base/status.h
  uint32_t bytes;  // of the value, or of the error's text
  uint32_t reserved;
  // char bytes[bytes];
};

struct Welcome {
  WireIncarnation incarnation;
  uint64_t job_nonce;                  // part of every data hello
  char listen_address[kAddressBytes];  // data listener binds here, port 0
};
struct Refused {
  char message[kMessageBytes];
};
struct RosterWireEntry {
  uint8_t role;  // enum Role
  uint8_t holds_resume;
  uint16_t reserved;
  int32_t rank;
  int32_t previous_rank;
  int32_t slot;
  WireIncarnation incarnation;
  WireEndpoint data;
  char host[kHostBytes];
};
// A roster travels in parts of at most kRosterPartEntriesMax entries, in order.
struct RosterPart {
  WireGeneration generation;
  WireHeld resume;
  uint32_t parent;
  uint8_t kind;  // enum GenerationKind
  uint8_t reserved[3];
  uint32_t first;  // index of the first entry of this part
  uint32_t count;  // entries in this part, following this struct
  uint32_t total;
  uint32_t reserved2;
  // RosterWireEntry entries[count];
};
struct FinishRecorded {
  WireGeneration generation;
  WireHeld final_state;
};
// The job went on without this worker while its host was silent. From now on it is a newcomer under
// this name, with the state that it holds.
struct OfferedAgain {
  WireIncarnation incarnation;
};

}  // namespace elastic::internal::local
