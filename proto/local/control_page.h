#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace elastic::internal::local {

// The agent-worker link's shared memory, version 1. Plain structs, little-endian, fixed offsets; no
// pointers. One control page per worker incarnation, in a memfd that the agent keeps, so it
// outlives the worker. Who writes what is said field by field; everything else is read-only.

inline constexpr uint32_t kControlPageMagic = 0x31504C45;  // "ELP1"
inline constexpr uint16_t kControlPageVersion = 1;
inline constexpr size_t kControlPageBytes = 4096;
inline constexpr int kIdentitySlots = 8;

// Full identity of generation `number`, in slot number % kIdentitySlots; written before the commit
// word names that number: by the agent for installed generations, by the worker for prepared ones.
struct IdentitySlot {
  std::atomic<uint64_t> server;
  std::atomic<uint64_t> digest;
  std::atomic<uint32_t> number;
  uint32_t reserved;
};

// The version of state that is really there. Written by the worker into the slot that `held_index`
// does not name, then published by storing the index: a death in between leaves the old one.
struct HeldSlot {
  std::atomic<uint32_t> generation;  // 0: holds nothing
  std::atomic<uint32_t> commits;
  std::atomic<uint64_t> digest;  // HashBytes of the state's bytes
  std::atomic<uint64_t> step;    // the program's label
  std::atomic<uint64_t> offset;  // of the committed copy in the state memfd
  std::atomic<uint64_t> bytes;
};

// CLOCK_BOOTTIME nanoseconds of the newest recovery, for benchmarks and status; 0: not yet.
struct RecoveryStamps {
  std::atomic<int64_t> fenced;       // agent: this word was fenced
  std::atomic<int64_t> bell_heard;   // runtime thread
  std::atomic<int64_t> roster_came;  // runtime thread: successor received
  std::atomic<int64_t> edges_up;     // runtime thread
  std::atomic<int64_t> restored;     // state of the resume version in place
};

struct ControlPage {
  // Written once by the guardian before the worker is spawned.
  uint32_t magic;
  uint16_t version;
  uint16_t reserved;

  // rendezvous/base/commit_word.h. Fence and reset: agent. Commit and prepared entry: worker.
  alignas(64) std::atomic<uint64_t> commit_word;

  // A pthread_mutex_t, process-shared and robust, held by the runtime's thread for its whole life
  // and initialised by it after WELCOME; `owner_ready` is set after the lock is taken. Its first 32
  // bits are the futex word: the kernel sets FUTEX_OWNER_DIED (bit 30) when the owner dies.
  // Unlocked on purpose it has no owner: the runtime was shut down, and the process will exit by
  // itself.
  alignas(64) unsigned char owner_mutex[64];
  std::atomic<uint32_t> owner_ready;

  // Written by the runtime thread every kWorkerBeatInterval.
  alignas(64) std::atomic<uint64_t> beats;
  std::atomic<uint32_t> phase;  // enum Phase of rendezvous/base/report.h

  // Written by the agent: CLOCK_BOOTTIME nanoseconds after which this process must not live (P23);
  // 0: none. The runtime thread ends the process when it has passed.
  alignas(64) std::atomic<int64_t> kill_at_ns;

  alignas(64) IdentitySlot identity[kIdentitySlots];
  alignas(64) HeldSlot held[2];
  std::atomic<uint32_t> held_index;
  alignas(64) RecoveryStamps stamps;
};
static_assert(sizeof(ControlPage) <= kControlPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
// Where tests/support/page.py reads them; another layout is another version.
static_assert(offsetof(ControlPage, magic) == 0 && offsetof(ControlPage, version) == 4);
static_assert(offsetof(ControlPage, phase) == 264 && kControlPageVersion == 1);
static_assert(offsetof(ControlPage, commit_word) == 64 && offsetof(ControlPage, beats) == 256);
static_assert(offsetof(ControlPage, held) == 576 && sizeof(HeldSlot) == 40 &&
              offsetof(ControlPage, held_index) == 656);

// One per host, shared by guardian and agent.
struct GuardianPage {
  std::atomic<int64_t> kill_at_ns;        // agent: kill every worker at that time; 0: none
  std::atomic<int64_t> guardian_beat_ns;  // guardian: newest turn of its loop
};

}  // namespace elastic::internal::local
