#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

#include "rendezvous/base/ids.h"
#include "rendezvous/base/time.h"

namespace elastic::internal::sim {

enum class Fault : uint8_t {
  kWorkerCrash,
  kWorkerStop,
  kWorkerLeave,
  kSlowStart,
  kEdgeReset,
  kDialFails,  // for want of descriptors, for a while
  kNoAnswer,   // to those who dial, for a while
  kAgentCrash,
  kAgentPause,
  kGuardianStop,
  kHostLost,
  kClockJump,  // of a host that is suspended and goes on
  kCutUp,      // of the link to the server
  kCutDown,
  kCutBoth,
  kPartition,        // from the server and from all other hosts
  kPartitionOneWay,  // or from one other host only, without a reset
  kServerRestart,
  kServerPause,
  kCount,
};
constexpr bool AtServer(Fault fault) { return fault >= Fault::kServerRestart; }
const char* NameOf(Fault fault);

// Where the protocol stands; what each waits for is in sim_coverage.cc.
enum class Stage : uint8_t {
  kRunning,
  kPrepared,
  kMarked,
  kForming,
  kEnteredInPart,
  kFinishing,
  kServerAway,
  kCount,
};
const char* NameOf(Stage stage);
// Null, or why nothing that this stage waits for can be hit by that fault.
const char* NeverMeets(Fault fault, Stage stage);

inline constexpr auto kFaults = static_cast<size_t>(Fault::kCount);
inline constexpr auto kStages = static_cast<size_t>(Stage::kCount);
// How often a fault delayed, dropped or killed what that stage was waiting for; one fault counts
// once a stage.
using Coverage = std::array<std::array<int, kStages>, kFaults>;

// A fault that was injected, to be counted where it matters.
struct Injected {
  Fault fault = Fault::kCount;  // kCount: none
  uint64_t id = 0;
};

// Something that is broken until a time.
struct Until {
  Instant end{};
  Injected by;
};

// What the job waits for, as of the newest step of the server.
struct Awaited {
  Stage stage = Stage::kForming;
  std::set<WorkerIncarnation> workers;  // as processes
  std::set<int> hosts;
};

struct Target {
  Fault fault;
  Stage stage;
};

}  // namespace elastic::internal::sim
