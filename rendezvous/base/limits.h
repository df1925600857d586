#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// Limits that more than one part knows (style rule 7); reaching one is an error with its own
// message. What belongs to one part alone is named there.
inline constexpr int kHostsMax = 1024;
inline constexpr int kAgentStreamsMax =
    2 * kHostsMax;  // a host's old stream may linger beside its new
inline constexpr int kSlotsPerHostMax = 256;
inline constexpr int kMembersMax = 1024;
// Workers, and a copy of each member that the parent generation may have lost.
inline constexpr int kRosterEntriesMax = 2 * kMembersMax;
inline constexpr int kMarksMax = 1 << 16;  // in a report or a directive
inline constexpr size_t kHostNameBytesMax = 255;
inline constexpr size_t kJobIdBytesMax = 63;  // kJobIdBytes of proto/local/frames.h less its NUL
inline constexpr size_t kDriverQueueMax = 65536;             // events waiting for the core
inline constexpr size_t kControlMessageBytesMax = 4u << 20;  // one gRPC message
inline constexpr size_t kLocalFrameBytesMax = 200u << 10;    // one frame of the Unix socket
// Generation and agent numbers that a server without a record takes from its predecessor's agents.
inline constexpr uint32_t kNumbersLearntMax = uint32_t{1} << 31;
inline constexpr size_t kStateBytesMax = size_t{1} << 42;
// Pieces of state that a program keeps in place.
inline constexpr size_t kStateItemsMax = 65536;
inline constexpr size_t kStateItemNameBytesMax = 127;
// Put and get of a generation: an NCCL id has 128 bytes, a UCX address some hundred.
inline constexpr size_t kStoreKeyBytesMax = 255;
inline constexpr size_t kStoreValueBytesMax = 64u << 10;
inline constexpr size_t kStoreKeysMax = 4096;       // of one generation
inline constexpr size_t kStoreBytesMax = 1u << 20;  // of one generation, keys and values

// Times of the protocol that are no flags.
inline constexpr Duration kKillAllowance = std::chrono::seconds(1);              // P23
inline constexpr Duration kStreamReturnWindow = std::chrono::milliseconds(200);  // P22
// A launcher whose connection to a standing server has ended, or was never made, is gone after it.
inline constexpr Duration kLauncherReturnWindow = std::chrono::seconds(5);
// A server that was stopped gives agents this long to come back before it judges any.
inline constexpr Duration kReturnAfterPause = std::chrono::seconds(1);
inline constexpr Duration kWorkerBeatInterval = std::chrono::milliseconds(100);  // P23
inline constexpr Duration kAgentBeatInterval = std::chrono::milliseconds(250);
// A heartbeat time-out must leave room for one lost beat, or a busy host counts as a lost one.
inline constexpr Duration kHeartbeatTimeoutMin = 2 * kAgentBeatInterval;
inline constexpr Duration kGuardianSilenceLimit = std::chrono::seconds(1);  // P23
// What is left of a worker that is dying, or the wrapper around it (a shell, `conda run`), has this
// long to end by itself and tell its exit code before it is killed.
inline constexpr Duration kDyingGrace = std::chrono::milliseconds(300);
inline constexpr Duration kSpawnHold =
    std::chrono::milliseconds(100);  // replacement after all entered, or this
inline constexpr Duration kRestartDelayFirst = std::chrono::seconds(1);
inline constexpr Duration kRestartDelayMax = std::chrono::seconds(60);
inline constexpr Duration kBrokenLinkWindow = std::chrono::seconds(10);

// A failed edge is made anew after this pause, doubled from failure to failure. Inside a generation
// the others wait for this worker, so it stops after so many failures and accuses or gives up
// (P18).
inline constexpr Duration kEdgeRetryDelayFirst = std::chrono::milliseconds(500);
inline constexpr Duration kEdgeRetryDelayMax = std::chrono::seconds(8);
inline constexpr int kEdgeTriesMax = 3;

// Defaults of flags.
inline constexpr Duration kHeartbeatTimeoutDefault = std::chrono::seconds(3);
inline constexpr Duration kStartTimeoutDefault = std::chrono::seconds(600);  // as in Horovod
inline constexpr Duration kElasticTimeoutDefault = std::chrono::seconds(600);
inline constexpr Duration kGracePeriodDefault = std::chrono::seconds(20);
inline constexpr Duration kEntryTimeoutDefault = std::chrono::seconds(60);
inline constexpr Duration kOrphanLimitInProcess =
    std::chrono::seconds(30);  // server inside elastic-run
inline constexpr Duration kOrphanLimitStanding = std::chrono::minutes(10);
inline constexpr int kNoProgressLimitDefault = 3;
// What kills several workers need not kill them at once: a loss this soon after a generation was
// installed belongs to the loss before, if those who are lost were there already.
inline constexpr Duration kIncidentWindow = std::chrono::milliseconds(200);

}  // namespace elastic::internal
