#include "rendezvous/server/job_news.h"

#include <algorithm>
#include <utility>

#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

void JobNews::Note(Severity severity, const std::string& text) {
  v1::JobEvent event;
  event.mutable_note()->set_severity(ToProto(severity));
  event.mutable_note()->set_text(Utf8(text));
  Add(std::move(event));
}

void JobNews::Ended(int exit_code, const std::string& reason) {
  v1::JobEvent event;
  event.mutable_ended()->set_exit_code(exit_code);
  event.mutable_ended()->set_reason(Utf8(reason));
  Add(std::move(event));
}

bool JobNews::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void JobNews::Add(v1::JobEvent event) {
  std::vector<std::shared_ptr<NewsReader>> readers;  // rung without the lock
  {
    MutexLock lock(mutex_);
    if (ended_) {
      return;
    }
    ended_ = event.has_ended();
    event.set_sequence(++newest_);
    events_.push_back(std::move(event));
    if (events_.size() > kNewsKept) {
      events_.pop_front();
    }
    for (const std::weak_ptr<NewsReader>& reader : readers_) {
      readers.push_back(reader.lock());
    }
  }
  for (const std::shared_ptr<NewsReader>& reader : readers) {
    if (reader != nullptr) {
      reader->OnNews();
    }
  }
}

void JobNews::Listen(std::weak_ptr<NewsReader> reader) {
  MutexLock lock(mutex_);
  std::erase_if(readers_, [](const auto& one) { return one.expired(); });
  readers_.push_back(std::move(reader));
}

std::optional<v1::JobEvent> JobNews::After(uint64_t sequence) const {
  MutexLock lock(mutex_);
  const auto found = std::ranges::upper_bound(
      events_, sequence, {}, [](const v1::JobEvent& event) { return event.sequence(); });
  return found == events_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace elastic::internal
