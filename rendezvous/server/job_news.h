#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/v1/jobs.pb.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/mutex.h"

namespace elastic::internal {

// Is told that there is news; asks for it itself. From any thread.
class NewsReader {
 public:
  virtual ~NewsReader() = default;
  virtual void OnNews() = 0;
};

// What a job's launcher is to be told. Readers come and go and read at their own pace, each from
// the sequence number up to which it knows; the newest kNewsKept events are kept for them.
class JobNews {
 public:
  static constexpr size_t kNewsKept = 1024;

  void Note(Severity severity, const std::string& text);
  void Ended(int exit_code, const std::string& reason);  // the last event
  bool ended() const;

  void Listen(std::weak_ptr<NewsReader> reader);
  // The oldest event with a larger sequence number, if there is one.
  std::optional<v1::JobEvent> After(uint64_t sequence) const;

 private:
  void Add(v1::JobEvent event);

  mutable Mutex mutex_;
  uint64_t newest_ GUARDED_BY(mutex_) = 0;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::deque<v1::JobEvent> events_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<NewsReader>> readers_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
