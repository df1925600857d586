#include "launcher/agent/inbox.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "rendezvous/base/check.h"

namespace elastic::internal {

Inbox::Inbox() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { ELASTIC_CHECK(wake_.valid()); }

void Inbox::Post(InboxMessage message) {
  {
    MutexLock lock(mutex_);
    const bool replaces = !messages_.empty() && messages_.back().index() == message.index() &&
                          !std::holds_alternative<OwnerEnded>(message);
    if (replaces) {
      messages_.back() = std::move(message);
    } else {
      messages_.push_back(std::move(message));
    }
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

std::vector<InboxMessage> Inbox::Take() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(wake_.get(), &count, sizeof count);
  std::vector<InboxMessage> messages;
  {
    MutexLock lock(mutex_);
    messages.swap(messages_);
  }
  std::stable_partition(messages.begin(), messages.end(), [](const InboxMessage& message) {
    return std::holds_alternative<OwnerEnded>(message);
  });
  return messages;
}

}  // namespace elastic::internal
