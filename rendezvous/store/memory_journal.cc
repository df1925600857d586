#include "rendezvous/base/mutex.h"
#include "rendezvous/store/journal.h"

namespace elastic::internal {

namespace {

class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(ServerIncarnation newest) : newest_server_(newest) {}

  StatusOr<ServerIncarnation> BeginIncarnation() override {
    MutexLock lock(mutex_);
    ++newest_server_.value;
    return newest_server_;
  }

  Status Write(const JournalRecord& record) override {
    MutexLock lock(mutex_);
    if (record.server < newest_server_) {
      return AbortedError("server incarnation " + ToString(record.server) +
                          " may not write any more: incarnation " + ToString(newest_server_) +
                          " has begun");
    }
    if (record.server > newest_server_) {
      return FailedPreconditionError("server incarnation " + ToString(record.server) +
                                     " was never begun; the newest is " + ToString(newest_server_));
    }
    newest_ = record;
    return OkStatus();
  }

  StatusOr<std::optional<JournalRecord>> Newest() override {
    MutexLock lock(mutex_);
    return newest_;
  }

 private:
  Mutex mutex_;
  ServerIncarnation newest_server_ GUARDED_BY(mutex_);
  std::optional<JournalRecord> newest_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Journal> MakeMemoryJournal(ServerIncarnation newest) {
  return std::make_unique<MemoryJournal>(newest);
}

}  // namespace elastic::internal
