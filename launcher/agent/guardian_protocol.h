#pragma once

#include <cstdint>

#include "proto/local/frames.h"

namespace elastic::internal {

// What agent and guardian say to each other over a SOCK_SEQPACKET pair. Both are one program,
// forked from one process, so there is no version; descriptors travel by SCM_RIGHTS.

enum class GuardianCommandKind : uint32_t {
  // Descriptor: a memfd with `arguments`, then `environment` strings, each NUL-terminated.
  // `text_bytes` in all.
  kSpawn = 1,
  // `signal` to the worker and all its descendants. SIGKILL is repeated until none is left; then
  // the guardian reports kExited. Descendants that outlive the worker are killed, but for those of
  // one that got another signal: a shell ends by SIGTERM at once, while what it runs still saves.
  kKill = 2,
};

struct GuardianCommand {
  GuardianCommandKind kind;
  local::WireIncarnation incarnation;
  int32_t signal;
  uint32_t arguments;
  uint32_t environment;
  uint64_t text_bytes;
};

enum class GuardianEventKind : uint32_t {
  // exec succeeded. Descriptors: page, state, bell, standard output, standard error.
  kSpawned = 1,
  kSpawnFailed = 2,  // `step` and `error_number` say why; the incarnation is over
  // The process has ended and none of its descendants is left (but `left_behind`, which cannot be
  // killed). The guardian has forgotten it.
  kExited = 3,
};
inline constexpr int kSpawnedDescriptors = 5;

// Environment variable `JOB/AGENT.COUNTER` by which orphans are matched to the worker that started
// them, when nothing else is left that would tell.
inline constexpr char kWorkerVariable[] = "ELASTIC_WORKER";

// What failed in starting a worker.
enum class SpawnStep : int32_t {
  kNone = 0,
  kTable = 1,   // processes of kGuardianWorkersMax workers live
  kText = 2,    // too many arguments or environment variables
  kMemory = 3,  // memfd, eventfd or pipes
  kFork = 4,
  kExec = 5,
};

struct GuardianEvent {
  GuardianEventKind kind;
  local::WireIncarnation incarnation;
  int32_t pid;
  int32_t wait_status;
  int32_t error_number;
  SpawnStep step;
  int32_t left_behind;
};

}  // namespace elastic::internal
