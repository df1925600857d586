#pragma once

#include <chrono>
#include <cstddef>

#include "rendezvous/base/limits.h"

namespace elastic::internal {

// Limits of the data plane (style rule 7).
inline constexpr int kFullMeshMax = 16;                        // ranks with an edge to every other
inline constexpr size_t kDirectBytesMax = 16u << 10;           // larger operations use the ring
inline constexpr size_t kScratchBytes = 256u << 10;            // one operation's, fits in L2
inline constexpr size_t kSendBytesMax = 512u << 10;            // one system call
inline constexpr size_t kReceiveBytesMax = 512u << 10;         // the same
inline constexpr size_t kWaitingHellosMax = 4 * kMembersMax;   // roster not known here yet
inline constexpr size_t kUnreadHellosMax = 4 * kMembersMax;    // accepted, hello incomplete
inline constexpr size_t kTransferBytesPerProgress = 4u << 20;  // of one state transfer
inline constexpr int kCreatedCommunicatorsMax = 64;            // of one generation, by the program
inline constexpr int kListenBacklog = 4096;

inline constexpr Duration kHelloReadLimit = std::chrono::seconds(5);  // accepted, says nothing
// No answer to three SYN (sent at 0, 1 and 3 s); a failed edge is dialled kEdgeTriesMax times.
inline constexpr Duration kDialLimit = std::chrono::seconds(4);
// A hello may wait for its roster as long as entering a generation may take.
inline constexpr Duration kHelloWaitLimit = kEntryTimeoutDefault;

static_assert(kFullMeshMax * kDirectBytesMax <= kScratchBytes);

}  // namespace elastic::internal
