#include "rendezvous/server/event_queue.h"

#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

template <class Kind>
const Kind* EventOf(const EventQueue::Item& item) {
  const Event* event = std::get_if<Event>(&item);
  return event == nullptr ? nullptr : std::get_if<Kind>(event);
}

}  // namespace

bool EventQueue::Push(Item item) {
  MutexLock lock(mutex_);
  if (closed_) {
    return false;
  }
  const bool full = items_.size() >= kDriverQueueMax;
  if (const AgentReported* report = EventOf<AgentReported>(item)) {
    const auto waiting = report_positions_.find(report->connection);
    if (waiting != report_positions_.end()) {
      items_[waiting->second - front_position_] = std::move(item);
      return true;
    }
    if (full) {
      return false;
    }
    report_positions_[report->connection] = front_position_ + items_.size();
  } else if (full && EventOf<AgentDisconnected>(item) == nullptr) {
    return false;
  }
  items_.push_back(std::move(item));
  changed_.notify_one();
  return true;
}

std::optional<EventQueue::Item> EventQueue::Pop(std::optional<Instant> until) {
  MutexLock lock(mutex_);
  while (items_.empty() && !closed_) {
    if (!until.has_value()) {
      changed_.wait(mutex_);
      continue;
    }
    const Duration left = *until - Now();
    if (left <= Duration::zero()) {
      return std::nullopt;
    }
    changed_.wait_for(mutex_, left);
  }
  return TakeFront();
}

std::optional<EventQueue::Item> EventQueue::TakeFront() {
  if (items_.empty()) {
    return std::nullopt;
  }
  Item item = std::move(items_.front());
  items_.pop_front();
  ++front_position_;
  if (const AgentReported* report = EventOf<AgentReported>(item)) {
    report_positions_.erase(report->connection);
  }
  return item;
}

void EventQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool EventQueue::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace elastic::internal
