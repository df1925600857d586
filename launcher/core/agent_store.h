#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// This host's part of the generation-scoped put and get: which calls of its workers wait, and what
// of it the server must hear again (P24). Values of other hosts are kept for the next who asks.
//
// A server that was restarted without its memory is told everything again that workers of this host
// have put; if a host is lost with what it had put, its generation is over with it.
class AgentStore {
 public:
  // The call `request` of that process is over.
  struct Answer {
    WorkerIncarnation process;
    uint32_t request = 0;
    StatusCode code = StatusCode::kOk;
    std::string bytes;  // of a get that is OK: the value; else the error's text
    friend bool operator==(const Answer&, const Answer&) = default;
  };
  using Answers = std::vector<Answer>;
  using Over = std::function<bool(const GenerationId&)>;

  // An empty answer: the server has to be asked. A worker makes one call at a time, so a call takes
  // the place of its last one for that key, whose deadline has passed.
  Answers Put(WorkerIncarnation process, uint32_t request, StorePut put);
  Answers Get(WorkerIncarnation process, uint32_t request, const StoreKey& key);
  // It knows nothing of what its predecessor was told.
  void ServerIsNew();
  Answers Take(const Directive& directive);
  // Forgets what belongs to generations that are over; calls that wait there end with ABORTED.
  Answers Drop(const Over& over);

  void FillReport(AgentReport& report) const;
  // The next report says something else of it than the newest one.
  bool dirty() const { return dirty_; }
  void Reported() { dirty_ = false; }

 private:
  struct PutCall {
    WorkerIncarnation process;
    uint32_t request = 0;
    std::string value;
  };
  struct GetCall {
    WorkerIncarnation process;
    uint32_t request = 0;
  };
  struct Entry {
    std::optional<std::string> value;  // as it stands at the server
    bool own = false;                  // put by a worker of this host
    bool known = false;                // and the present server has it
    std::deque<PutCall> puts;          // not answered; the first is the one that is told
    std::vector<GetCall> gets;
  };

  Status RoomFor(const StoreKey& key, size_t bytes) const;
  void TakeAnswer(const StoreAnswer& answer, Answers& answers);
  void EndFirstPut(const StoreKey& key, Entry& entry, const Status& status, Answers& answers);
  void Settle(const StoreKey& key, Entry& entry, Answers& answers);

  std::map<StoreKey, Entry> entries_;
  bool dirty_ = false;
};

}  // namespace elastic::internal
