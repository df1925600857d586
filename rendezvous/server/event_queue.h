#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "rendezvous/base/mutex.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// Where the driver sends what one agent is to be told; the agent's stream implements it. All calls
// return at once; after Close nothing is sent any more.
class AgentSink {
 public:
  virtual ~AgentSink() = default;
  virtual void Welcome(ServerIncarnation server, AgentIncarnation agent) = 0;
  virtual void Deliver(Directive directive) = 0;  // replaces one that still waits to be written
  virtual void Close(Status reason) = 0;
};

// A stream whose hello was right.
struct StreamOpened {
  AgentConnected event;
  std::shared_ptr<AgentSink> sink;
};
using ViewRequest = std::function<void(const JobView&)>;

// What waits for the driver, bounded by kDriverQueueMax. Reports are whole states, so a newer one
// of the same stream takes the place of one that still waits: a slow driver costs detail, never
// memory, and each stream has at most three items here.
class EventQueue {
 public:
  using Item = std::variant<Event, StreamOpened, ViewRequest>;

  // From any thread. False when the queue is full or closed; the end of a stream is never refused
  // for lack of room, because nothing would repeat it.
  bool Push(Item item);
  // Waits for an item until then (nullopt: without limit). Nullopt: time passed, or closed.
  std::optional<Item> Pop(std::optional<Instant> until);
  // No further items; wakes Pop, which still gives out what is left.
  void Close();
  bool closed() const;

 private:
  std::optional<Item> TakeFront() REQUIRES_LOCK(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ GUARDED_BY(mutex_) = false;
  uint64_t front_position_ GUARDED_BY(mutex_) = 0;  // of items_.front(), counted from the start
  std::deque<Item> items_ GUARDED_BY(mutex_);
  std::map<ConnectionId, uint64_t> report_positions_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
