#pragma once

#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The descriptor of elastic_event_fd: readable while it rings. Made when it is first asked for.
class LoopBell {
 public:
  bool made() const { return fd_.valid(); }
  // Errors: of eventfd(2), most often that the process has too many descriptors open.
  StatusOr<int> Descriptor();
  void Ring(bool ring);

 private:
  UniqueFd fd_;
  bool rings_ = false;
};

}  // namespace elastic::internal
