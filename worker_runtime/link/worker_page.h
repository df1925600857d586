#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "collectives/types.h"
#include "proto/local/control_page.h"
#include "rendezvous/base/commit_word.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// The worker's view of its control page (proto/local/control_page.h): shared memory that the agent
// reads and fences, and that outlives this process. Who may write which field, and in which order,
// is decided here and nowhere else in the runtime.
class WorkerPage {
 public:
  // Maps the page of `fd`, which stays the caller's. Errors: INVALID_ARGUMENT for another magic,
  // version or size; errors of mmap.
  static StatusOr<std::unique_ptr<WorkerPage>> Map(int fd);
  ~WorkerPage();
  WorkerPage(const WorkerPage&) = delete;
  WorkerPage& operator=(const WorkerPage&) = delete;

  // ---- commit word: any thread ----------------------------------------
  CommitWord word() const;
  // The full name of the generation that `word` names; invalid when its slot says otherwise.
  GenerationId IdentityOf(CommitWord word) const;
  // Writes the identity if the generation changes, then compare-exchanges. The word afterwards is
  // for the caller to reread.
  void CompareExchange(CommitWord from, CommitWord to, const GenerationId& generation);

  // ---- held: one writer at a time ----------------------------------------
  Held held() const;
  struct Place {
    size_t offset = 0;  // in the state's memfd
    size_t bytes = 0;
  };
  void PublishHeld(const Held& held, Place place);

  // ---- life: the runtime's thread ----------------------------------------
  // Initialises the robust mutex and locks it for the calling thread: its death rings the agent.
  Status LockOwner();
  // Unlocks it on purpose: the process exits by itself.
  void ReleaseOwner();
  void Beat();
  // 0: none. When it has passed, this process must not live.
  int64_t kill_at_ns() const { return page_->kill_at_ns.load(std::memory_order_acquire); }

  void SetPhase(Phase phase) {
    page_->phase.store(static_cast<uint32_t>(phase), std::memory_order_release);
  }
  local::RecoveryStamps& stamps() { return page_->stamps; }
  const local::RecoveryStamps& stamps() const { return page_->stamps; }

 private:
  explicit WorkerPage(local::ControlPage* page) : page_(page) {}

  local::ControlPage* const page_;
};

// The mark that the data plane's waits watch: the bell for waking, the commit word for the truth.
class BellInterrupt final : public Interrupt {
 public:
  BellInterrupt(const WorkerPage& page, int bell_fd) : page_(page), bell_fd_(bell_fd) {}
  int event_fd() const override { return bell_fd_; }
  bool Over(GenerationNumber generation) const override {
    const CommitWord word = page_.word();
    return word.fenced || word.generation != generation;
  }

 private:
  const WorkerPage& page_;
  const int bell_fd_;
};

}  // namespace elastic::internal
