#pragma once

#include <memory>
#include <optional>

#include "rendezvous/base/status.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// Durable decisions of a job's server (P2). Every write is conditional on the writer's incarnation
// still being the newest one; a refused server must stop.
class Journal {
 public:
  virtual ~Journal() = default;
  // Reserves and returns the next server incarnation; older ones are refused from now on.
  virtual StatusOr<ServerIncarnation> BeginIncarnation() = 0;
  // Errors: ABORTED when a newer incarnation exists; UNAVAILABLE when the store cannot be reached.
  virtual Status Write(const JournalRecord& record) = 0;
  virtual StatusOr<std::optional<JournalRecord>> Newest() = 0;
};

// Lives as long as the process. `newest` has been begun already, elsewhere.
std::unique_ptr<Journal> MakeMemoryJournal(ServerIncarnation newest = {});

}  // namespace elastic::internal
