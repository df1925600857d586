#pragma once

#include <memory>
#include <optional>

#include "rendezvous/base/mutex.h"
#include "rendezvous/server/driver.h"
#include "rendezvous/server/job_news.h"

namespace elastic::internal {

// A job that this server runs, or has run.
class ServedJob {
 public:
  // One of elastic-run's own process. `journal` must outlive the job.
  ServedJob(JobSpec spec, ServerIncarnation own, std::optional<JournalRecord> restored,
            Journal& journal, Driver::Callbacks callbacks);
  // One that a launcher has submitted: it has a journal of its own, in memory, and its notes and
  // its end are news for the launcher, without which it is stopped.
  ServedJob(const JobSpec& spec, ServerIncarnation own);

  const JobSpec& spec() const { return spec_; }
  ServerIncarnation incarnation() const { return incarnation_; }
  Driver& driver() { return driver_; }
  bool submitted() const { return journal_ != nullptr; }
  JobNews& news() { return news_; }

  // One more, or one less, stream of its launcher.
  void AddLauncher();
  void RemoveLauncher();

 private:
  ServedJob(const JobSpec& spec, ServerIncarnation own, std::unique_ptr<Journal> journal);

  const JobSpec spec_;
  const ServerIncarnation incarnation_;
  const std::unique_ptr<Journal> journal_;
  JobNews news_;
  Mutex mutex_;
  int launchers_ GUARDED_BY(mutex_) = 0;
  Driver driver_;  // last: its thread uses the others
};

// The place for the one job that a server can run at a time.
class JobSlot {
 public:
  // Null: no job has come yet.
  std::shared_ptr<ServedJob> Get() const;
  void Put(std::shared_ptr<ServedJob> job);

  // Takes a launcher's job, unless another one runs; the same job is taken any number of times.
  // Errors: FAILED_PRECONDITION, naming the job that runs here.
  StatusOr<std::shared_ptr<ServedJob>> Submit(const JobSpec& job, ServerIncarnation newest);
  // Ends all streams of the job and its driver.
  void Stop();

 private:
  mutable Mutex mutex_;
  std::shared_ptr<ServedJob> job_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
