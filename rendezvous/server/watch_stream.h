#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "rendezvous/server/job_slot.h"

namespace elastic::internal {

// The server's end of one launcher's Watch: writes the job's news one after the other, as fast as
// the launcher takes them. It owns itself from Begin or Refuse until OnDone.
class WatchStream final : public grpc::ServerWriteReactor<v1::JobEvent>,
                          public NewsReader,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  explicit WatchStream(uint64_t after);  // the newest event that the launcher knows

  void Begin(std::shared_ptr<ServedJob> job);
  void Refuse(const Status& reason);

  void OnNews() override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Pump();

  std::shared_ptr<ServedJob> job_;
  std::shared_ptr<WatchStream> self_;  // keeps the reactor while gRPC knows it

  // Of whoever has set writing_.
  v1::JobEvent out_;

  Mutex mutex_;
  uint64_t written_ GUARDED_BY(mutex_);   // sequence of the newest event
  bool over_ GUARDED_BY(mutex_) = false;  // the end of the job is written, or the stream broken
  bool writing_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace elastic::internal
