#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// Every limit has a name here (style rule 7); reaching one is an error with its own message.
inline constexpr int kHostsMax = 1024;
inline constexpr int kAgentStreamsMax =
    2 * kHostsMax;  // a host's old stream may linger beside its new
inline constexpr int kSlotsPerHostMax = 256;
inline constexpr int kMembersMax = 1024;
inline constexpr size_t kHostNameBytesMax = 255;
inline constexpr size_t kJobIdBytesMax = 63;
inline constexpr size_t kDriverQueueMax = 65536;             // events waiting for the core
inline constexpr size_t kControlMessageBytesMax = 4u << 20;  // one gRPC message
inline constexpr size_t kLocalFrameBytesMax = 200u << 10;    // one frame of the Unix socket
inline constexpr size_t kStateBytesMax = size_t{1} << 42;

// Times of the protocol that are no flags.
inline constexpr Duration kKillAllowance = std::chrono::seconds(1);              // P23
inline constexpr Duration kStreamReturnWindow = std::chrono::milliseconds(200);  // P22
inline constexpr Duration kWorkerBeatInterval = std::chrono::milliseconds(100);  // P23
inline constexpr Duration kAgentBeatInterval = std::chrono::milliseconds(250);
inline constexpr Duration kGuardianSilenceLimit = std::chrono::seconds(1);  // P23
// What is left of a worker that is dying, or the wrapper around it (a shell, `conda run`), has this
// long to end by itself and tell its exit code before it is killed.
inline constexpr Duration kDyingGrace = std::chrono::milliseconds(300);
inline constexpr Duration kSpawnHold =
    std::chrono::milliseconds(100);  // replacement after all entered, or this
inline constexpr Duration kRestartDelayFirst = std::chrono::seconds(1);
inline constexpr Duration kRestartDelayMax = std::chrono::seconds(60);
inline constexpr Duration kBrokenLinkWindow = std::chrono::seconds(10);

// Defaults of flags.
inline constexpr Duration kHeartbeatTimeoutDefault = std::chrono::seconds(3);
inline constexpr Duration kElasticTimeoutDefault = std::chrono::seconds(600);
inline constexpr Duration kGracePeriodDefault = std::chrono::seconds(20);
inline constexpr Duration kEntryTimeoutDefault = std::chrono::seconds(60);
inline constexpr Duration kOrphanLimitInProcess =
    std::chrono::seconds(30);  // server inside elastic-run
inline constexpr int kNoProgressLimitDefault = 3;

}  // namespace elastic::internal
