#include "launcher/agent/control_words.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace elastic::internal {

namespace {

// A worker that publishes faster than it can be read may be caught between two slots each time.
// What is read then may be torn; whoever fetches that copy finds that its digest does not match.
constexpr int kHeldTriesMax = 16;

local::IdentitySlot& SlotOf(local::ControlPage& page, GenerationNumber number) {
  return page.identity[number.value % local::kIdentitySlots];
}

GenerationId ReadIdentity(local::ControlPage& page, GenerationNumber number) {
  local::IdentitySlot& slot = SlotOf(page, number);
  if (number.value == 0 || slot.number.load(std::memory_order_acquire) != number.value) {
    return {};
  }
  const GenerationId identity{ServerIncarnation{slot.server.load(std::memory_order_relaxed)},
                              number, slot.digest.load(std::memory_order_relaxed)};
  std::atomic_thread_fence(std::memory_order_acquire);
  return slot.number.load(std::memory_order_relaxed) == number.value ? identity : GenerationId{};
}

}  // namespace

StatusOr<std::unique_ptr<PageView>> PageView::Map(int page_fd, int bell_fd) {
  struct stat info {};
  if (fstat(page_fd, &info) != 0) {
    return ErrnoError(errno, "fstat of a control page");
  }
  if (static_cast<size_t>(info.st_size) < local::kControlPageBytes) {
    return InvalidArgumentError(
        StrCat("a control page has ", info.st_size, " bytes, want ", local::kControlPageBytes));
  }
  void* memory = mmap(nullptr, local::kControlPageBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, page_fd, 0);
  if (memory == MAP_FAILED) {
    return ErrnoError(errno, "mmap of a control page");
  }
  return std::unique_ptr<PageView>(new PageView(static_cast<local::ControlPage*>(memory), bell_fd));
}

PageView::~PageView() { munmap(page_, local::kControlPageBytes); }

PageReading PageView::Read() const {
  PageReading reading;
  reading.word = CommitWord::Unpack(page_->commit_word.load(std::memory_order_acquire));
  reading.generation = ReadIdentity(*page_, reading.word.generation);
  reading.held = ReadHeld().held;
  const uint32_t phase = page_->phase.load(std::memory_order_relaxed);
  reading.phase = phase <= static_cast<uint32_t>(Phase::kFinished) ? static_cast<Phase>(phase)
                                                                   : Phase::kUnspecified;
  if (reading.phase == Phase::kUnspecified) {
    reading.phase = Phase::kStarting;
  }
  reading.beats = page_->beats.load(std::memory_order_relaxed);
  return reading;
}

HeldPlace PageView::ReadHeld() const {
  HeldPlace place;
  for (int i = 0; i < kHeldTriesMax; ++i) {
    const uint32_t index = page_->held_index.load(std::memory_order_acquire);
    const local::HeldSlot& slot = page_->held[index % 2];
    place.held.version = {GenerationNumber{slot.generation.load(std::memory_order_relaxed)},
                          slot.commits.load(std::memory_order_relaxed)};
    place.held.digest = slot.digest.load(std::memory_order_relaxed);
    place.held.step = slot.step.load(std::memory_order_relaxed);
    place.offset = slot.offset.load(std::memory_order_relaxed);
    place.bytes = slot.bytes.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (page_->held_index.load(std::memory_order_relaxed) == index) {
      break;
    }
  }
  return place;
}

bool PageView::OwnerReady() const {
  return page_->owner_ready.load(std::memory_order_acquire) != 0;
}

uint32_t* PageView::owner_word() const { return reinterpret_cast<uint32_t*>(page_->owner_mutex); }

void PageView::Fence(GenerationNumber expected, Instant now) {
  uint64_t bits = page_->commit_word.load(std::memory_order_acquire);
  for (;;) {
    const CommitWord word = CommitWord::Unpack(bits);
    if (word.generation != expected || word.fenced) {
      return;
    }
    // Not a plain fetch_or: a worker may enter a prepared generation at this moment, which is not
    // the one to be fenced.
    if (page_->commit_word.compare_exchange_weak(bits, bits | CommitWord::kFencedBit,
                                                 std::memory_order_acq_rel)) {
      break;
    }
  }
  page_->stamps.fenced.store(ToNanoseconds(now), std::memory_order_relaxed);
  Ring();
}

void PageView::Reset(CommitWord from, CommitWord to, const GenerationId& generation) {
  if (generation.valid()) {
    local::IdentitySlot& slot = SlotOf(*page_, generation.number);
    slot.number.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    slot.server.store(generation.server.value, std::memory_order_relaxed);
    slot.digest.store(generation.roster_digest, std::memory_order_relaxed);
    slot.number.store(generation.number.value, std::memory_order_release);
  }
  uint64_t bits = from.Pack();
  if (page_->commit_word.compare_exchange_strong(bits, to.Pack(), std::memory_order_acq_rel)) {
    Ring();
  }
}

void PageView::StampDeadline(Instant kill_at) {
  page_->kill_at_ns.store(ToNanoseconds(kill_at), std::memory_order_release);
}

void PageView::Ring() {
  const uint64_t one = 1;
  // EAGAIN: the counter is full, so the bell is readable anyway.
  [[maybe_unused]] const ssize_t written = write(bell_fd_, &one, sizeof one);
}

}  // namespace elastic::internal
