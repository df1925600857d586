#pragma once

#include <cstddef>

#include "rendezvous/base/limits.h"

namespace elastic::internal {

// Limits of the agent and its guardian; those of the whole job are in rendezvous/base/limits.h.

// Workers with living processes that a guardian looks after: one a slot, and some that the agent
// has given up and that are being killed.
inline constexpr int kGuardianWorkersMax = 2 * kSlotsPerHostMax;
inline constexpr int kWorkerArgumentsMax = 8192;
inline constexpr int kWorkerEnvironmentMax = 8192;
inline constexpr int kAncestorsMax = 256;  // between a connecting process and its slot's
inline constexpr Duration kGuardianBeatInterval = std::chrono::milliseconds(100);
inline constexpr int kCommandsPerTurn = 4;  // that a guardian carries out between two beats

inline constexpr int kFutexWordsMax = 127;          // futex_waitv takes 128, one is our own
inline constexpr int kPendingConnectionsMax = 256;  // of processes that have not said who they are
inline constexpr int kFramesPerTurnMax = 64;     // read from one worker before the next has a turn
inline constexpr size_t kOutboxFramesMax = 256;  // waiting for a worker that does not read
inline constexpr size_t kOutputLineBytesMax = 64u << 10;  // longer lines are broken
inline constexpr Duration kOutputDrainLimit = std::chrono::seconds(2);

}  // namespace elastic::internal
