#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launcher/agent/futex_watch.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/time.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// What other threads of the agent tell the one that owns the core.
struct LinkRegistered {
  AgentIncarnation agent;
  ServerIncarnation server;
};
struct LinkDirective {
  Directive directive;
};
struct LinkLost {
  Status reason;
};
struct LinkRefused {
  Status reason;
};
struct OwnerEnded {
  WorkerIncarnation incarnation;
  OwnerEnd how;
};
using InboxMessage = std::variant<LinkRegistered, LinkDirective, LinkLost, LinkRefused, OwnerEnded>;

// A queue with an eventfd. It stays short without ever refusing: deaths are bounded by the workers,
// and a directive is a whole state, so that the newest replaces one that has not been taken yet.
class Inbox {
 public:
  Inbox();
  void Post(InboxMessage message);
  // Deaths first: nothing else is urgent.
  std::vector<InboxMessage> Take();
  int fd() const { return wake_.get(); }  // readable while there are messages

 private:
  const UniqueFd wake_;
  Mutex mutex_;
  std::vector<InboxMessage> messages_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
