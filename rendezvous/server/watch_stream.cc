#include "rendezvous/server/watch_stream.h"

#include <utility>

#include "rendezvous/client/grpc_status.h"

namespace elastic::internal {

WatchStream::WatchStream(uint64_t after) : written_(after) {}

void WatchStream::Begin(std::shared_ptr<ServedJob> job) {
  self_ = shared_from_this();
  job_ = std::move(job);
  job_->AddLauncher();
  job_->news().Listen(weak_from_this());
  Pump();
}

void WatchStream::Refuse(const Status& reason) {
  self_ = shared_from_this();
  {
    MutexLock lock(mutex_);
    finished_ = true;
  }
  Finish(ToGrpc(reason));
}

void WatchStream::OnNews() { Pump(); }

void WatchStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    over_ = over_ || !ok || out_.has_ended();
  }
  Pump();
}

void WatchStream::OnCancel() {
  {
    MutexLock lock(mutex_);
    over_ = true;
  }
  Pump();
}

// As for an agent's stream: one write at a time, and nothing beside or after the end.
void WatchStream::Pump() {
  bool finish = false;
  {
    MutexLock lock(mutex_);
    if (writing_ || finished_) {
      return;
    }
    if (over_) {
      finish = finished_ = true;
    } else {
      std::optional<v1::JobEvent> next = job_->news().After(written_);
      if (!next) {
        return;
      }
      written_ = next->sequence();
      writing_ = true;
      out_ = std::move(*next);
    }
  }
  if (finish) {
    Finish(grpc::Status::OK);
  } else {
    StartWrite(&out_);
  }
}

void WatchStream::OnDone() {
  if (job_ != nullptr) {
    job_->RemoveLauncher();
  }
  self_.reset();
}

}  // namespace elastic::internal
