#include "rendezvous/server/job_slot.h"

#include <utility>

namespace elastic::internal {

ServedJob::ServedJob(JobSpec spec, ServerIncarnation own, std::optional<JournalRecord> restored,
                     Journal& journal, Driver::Callbacks callbacks)
    : spec_(std::move(spec)),
      incarnation_(own),
      driver_(spec_, own, std::move(restored), journal, std::move(callbacks)) {}

ServedJob::ServedJob(const JobSpec& spec, ServerIncarnation own)
    : ServedJob(spec, own, MakeMemoryJournal(own)) {}

ServedJob::ServedJob(const JobSpec& spec, ServerIncarnation own, std::unique_ptr<Journal> journal)
    : spec_(spec),
      incarnation_(own),
      journal_(std::move(journal)),
      driver_(spec_, own, std::nullopt, *journal_,
              {.note =
                   [this](Severity severity, const std::string& text) {
                     Log(severity, "job ", spec_.job_id, ": ", text);
                     news_.Note(severity, text);
                   },
               .ended =
                   [this](int exit_code, const std::string& reason) {
                     LogInfo("job ", spec_.job_id, " is over: ", reason, " (exit code ", exit_code,
                             ")");
                     news_.Ended(exit_code, reason);
                   }}) {
  driver_.Post(LauncherWent{});  // until it watches
}

void ServedJob::AddLauncher() {
  MutexLock lock(mutex_);
  if (++launchers_ == 1) {
    driver_.Post(LauncherCame{});
  }
}

void ServedJob::RemoveLauncher() {
  MutexLock lock(mutex_);
  if (--launchers_ == 0) {
    driver_.Post(LauncherWent{});
  }
}

std::shared_ptr<ServedJob> JobSlot::Get() const {
  MutexLock lock(mutex_);
  return job_;
}

void JobSlot::Put(std::shared_ptr<ServedJob> job) {
  MutexLock lock(mutex_);
  job_ = std::move(job);
}

StatusOr<std::shared_ptr<ServedJob>> JobSlot::Submit(const JobSpec& job, ServerIncarnation newest) {
  std::shared_ptr<ServedJob> before;  // ends after the lock
  MutexLock lock(mutex_);
  if (job_ != nullptr && job_->spec().job_id == job.job_id) {
    if (job_->spec() != job) {
      return FailedPreconditionError("job `" + job.job_id +
                                     "` runs here already, with other settings");
    }
    return job_;
  }
  if (job_ != nullptr && !job_->news().ended()) {
    return FailedPreconditionError("this server runs job `" + job_->spec().job_id +
                                   "`, and it runs one at a time: use another server, or wait");
  }
  if (job_ != nullptr) {
    job_->driver().Stop();  // here, so that its thread is never the last to hold the job
    before = std::exchange(job_, nullptr);
  }
  job_ = std::make_shared<ServedJob>(job, ServerIncarnation{newest.value + 1});
  LogInfo("job ", job.job_id, " is taken", newest.value == 0 ? "" : ", and goes on");
  return job_;
}

void JobSlot::Stop() {
  if (const std::shared_ptr<ServedJob> job = Get()) {
    job->driver().Stop();
  }
}

}  // namespace elastic::internal
