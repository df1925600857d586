#pragma once

#include <cstddef>
#include <memory>

#include "launcher/core/agent_core.h"
#include "proto/local/control_page.h"

namespace elastic::internal {

// Where the committed copy lies in a worker's state memfd.
struct HeldPlace {
  Held held;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// The agent's view of one worker's control page. One thread of the agent, its owner, changes words
// (P12); others may read. What the worker wrote there is taken as bytes from a stranger: any value
// is possible, none may harm the agent.
class PageView {
 public:
  // Maps the page. `bell` is the worker's eventfd; both stay the caller's and outlive this.
  // Errors: of fstat and mmap; INVALID_ARGUMENT for a descriptor with fewer bytes than a page.
  static StatusOr<std::unique_ptr<PageView>> Map(int page_fd, int bell_fd);
  ~PageView();
  PageView(const PageView&) = delete;
  PageView& operator=(const PageView&) = delete;

  // The word first, then what it promises: `held` is written before the word that counts it.
  PageReading Read() const;
  HeldPlace ReadHeld() const;
  bool OwnerReady() const;
  // The robust mutex's futex word.
  uint32_t* owner_word() const;

  // Sets the fenced bit if the word's generation is `expected`, and rings. A word that was fenced
  // already stays silent.
  void Fence(GenerationNumber expected, Instant now);
  // Identity first, then the word, then the bell (P5).
  void Reset(CommitWord from, CommitWord to, const GenerationId& generation);
  void StampDeadline(Instant kill_at);

 private:
  PageView(local::ControlPage* page, int bell_fd) : page_(page), bell_fd_(bell_fd) {}
  void Ring();

  local::ControlPage* const page_;
  const int bell_fd_;
};

}  // namespace elastic::internal
