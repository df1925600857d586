#include "worker_runtime/elastic_c.h"

#include <unistd.h>
#include <optional>
#include <string>

#include "collectives/types.h"
#include "rendezvous/base/log.h"
#include "worker_runtime/c_border.h"
#include "worker_runtime/open_session.h"
#include "worker_runtime/run_loop.h"
#include "worker_runtime/session.h"

// The calls of the C interface: start and end, membership, state in two buffers, collectives, run.
// Calls for a program's own loop are in elastic_loop.cc.

namespace {

using elastic::internal::FailedPreconditionError;
using elastic::internal::InvalidArgumentError;
using elastic::internal::OkStatus;
using elastic::internal::Session;
using elastic::internal::Status;
using elastic::internal::StatusCode;
using elastic::internal::StrCat;
using elastic::internal::border::AsMember;
using elastic::internal::border::CheckInitialised;
using elastic::internal::border::CheckNotForked;
using elastic::internal::border::DeadlineOf;
using elastic::internal::border::FillStruct;
using elastic::internal::border::LastError;
using elastic::internal::border::LastStatus;
using elastic::internal::border::NotAMember;
using elastic::internal::border::process;
using elastic::internal::border::Remember;

// Also left by an exception of the program's that passes through.
struct InsideRun {
  InsideRun() { process.inside_run = true; }
  ~InsideRun() { process.inside_run = false; }
};

std::optional<elastic::internal::Membership> MembershipFor(const char* name) {
  if (Status status = CheckInitialised(); !status.ok()) {
    Remember(status);
    return std::nullopt;
  }
  auto membership = process.session->membership();
  if (membership) {
    Remember(ELASTIC_OK, "");
  } else {
    NotAMember(name);
  }
  return membership;
}

int32_t PlaceValue(const char* name, int32_t elastic::internal::Placement::*value) {
  const auto membership = MembershipFor(name);
  return membership ? membership->place.*value : -1;
}

}  // namespace

extern "C" {

const char* elastic_last_error(void) { return LastError().c_str(); }
elastic_status elastic_last_status(void) { return LastStatus(); }
const char* elastic_version(void) { return ELASTIC_VERSION_TEXT; }

elastic_status elastic_init(const elastic_init_options* options) {
  if (Status status = CheckNotForked(); !status.ok()) {
    return Remember(status);
  }
  if (process.session != nullptr) {
    return Remember(FailedPreconditionError(
        "elastic_init was called before: one call per process, then elastic_shutdown"));
  }
  if (options != nullptr) {
    if (options->struct_size < sizeof(elastic_init_options)) {
      return Remember(InvalidArgumentError(StrCat("elastic_init_options with struct_size ",
                                                  options->struct_size, ": set it to ",
                                                  sizeof(elastic_init_options))));
    }
    if (options->log != nullptr) {
      elastic::internal::SetLogSink(
          [log = options->log, user = options->log_user](elastic::internal::Severity severity,
                                                         std::string_view line) {
            log(user, static_cast<elastic_severity>(severity), std::string(line).c_str());
          },
          static_cast<elastic::internal::Severity>(options->log_threshold));
    }
  }
  auto session = elastic::internal::OpenSession();
  if (!session.ok()) {
    // The caller may be gone when the next elastic_init writes its first line.
    elastic::internal::SetLogSink(nullptr, elastic::internal::Severity::kError);
    return Remember(session.status());
  }
  process.session = std::move(*session);
  process.incarnation = process.session->incarnation();
  process.pid = getpid();
  process.mark.Set();
  return Remember(ELASTIC_OK, "");
}

elastic_status elastic_shutdown(void) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  process.session.reset();
  process.incarnation.clear();
  process.members_text.clear();
  elastic::internal::SetLogSink(nullptr, elastic::internal::Severity::kError);
  return Remember(ELASTIC_OK, "");
}

elastic_status elastic_join(elastic_membership* membership, const elastic_call_options* options) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  if (process.inside_run) {
    return Remember(FailedPreconditionError(
        "elastic_join inside elastic_run: return ELASTIC_ABORTED from the function instead"));
  }
  auto deadline = DeadlineOf(options);
  if (!deadline.ok()) {
    return Remember(deadline.status());
  }
  if (!process.session->done()) {
    if (Status status = process.session->Join(*deadline); !status.ok()) {
      return Remember(status);
    }
  }
  if (process.session->done()) {
    return Remember(ELASTIC_FINISHED,
                    "elastic_join: the job is finished, or does not need this process any more; "
                    "exit with 0");
  }
  return membership == nullptr ? Remember(ELASTIC_OK, "") : elastic_get_membership(membership);
}

elastic_status elastic_get_membership(elastic_membership* membership) {
  const auto found = MembershipFor("elastic_get_membership");
  if (!found) {
    return LastStatus();
  }
  const auto& place = found->place;
  return Remember(FillStruct(membership,
                             {.struct_size = 0,
                              .generation = found->generation.value,
                              .rank = place.rank,
                              .size = place.size,
                              .local_rank = place.local_rank,
                              .local_size = place.local_size,
                              .cross_rank = place.cross_rank,
                              .cross_size = place.cross_size,
                              .local_index = place.local_index,
                              .local_leader = place.local_leader ? 1 : 0},
                             sizeof(elastic_membership)));
}

int32_t elastic_rank(void) {
  return PlaceValue("elastic_rank", &elastic::internal::Placement::rank);
}
int32_t elastic_size(void) {
  return PlaceValue("elastic_size", &elastic::internal::Placement::size);
}
int32_t elastic_local_rank(void) {
  return PlaceValue("elastic_local_rank", &elastic::internal::Placement::local_rank);
}
int32_t elastic_local_size(void) {
  return PlaceValue("elastic_local_size", &elastic::internal::Placement::local_size);
}
int32_t elastic_cross_rank(void) {
  return PlaceValue("elastic_cross_rank", &elastic::internal::Placement::cross_rank);
}
int32_t elastic_cross_size(void) {
  return PlaceValue("elastic_cross_size", &elastic::internal::Placement::cross_size);
}
uint32_t elastic_generation(void) {
  const auto membership = MembershipFor("elastic_generation");
  return membership ? membership->generation.value : 0;
}
const char* elastic_incarnation(void) {
  return Remember(CheckInitialised()) == ELASTIC_OK ? process.incarnation.c_str() : "";
}

elastic_status elastic_state_create(size_t bytes) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  return Remember(process.session->CreateState(bytes));
}

void* elastic_state_current(void) {
  return Remember(CheckInitialised()) == ELASTIC_OK ? process.session->current() : nullptr;
}
void* elastic_state_next(void) {
  return Remember(CheckInitialised()) == ELASTIC_OK ? process.session->next() : nullptr;
}
uint64_t elastic_committed_step(void) {
  return Remember(CheckInitialised()) == ELASTIC_OK ? process.session->committed_step() : 0;
}

elastic_status elastic_commit(uint64_t step, const elastic_call_options* options) {
  return AsMember("elastic_commit", options, [&](Session::Deadline deadline) {
    return process.session->Commit(step, deadline);
  });
}

elastic_status elastic_request_stop(void) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  process.session->RequestStop();
  return Remember(OkStatus());
}

int32_t elastic_stop_requested(void) {
  return Remember(CheckInitialised()) == ELASTIC_OK && process.session->stop_requested() ? 1 : 0;
}

elastic_status elastic_run(elastic_function function, void* user) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  if (function == nullptr) {
    return Remember(InvalidArgumentError("elastic_run: the function is NULL"));
  }
  if (process.inside_run) {
    return Remember(FailedPreconditionError("elastic_run inside elastic_run: call it once"));
  }
  const InsideRun inside;
  elastic_status own = ELASTIC_OK;
  std::string own_error;
  const Status status = elastic::internal::RunLoop(*process.session, [&] {
    own = function(user);
    own_error = LastError();
    return own == ELASTIC_OK        ? elastic::internal::Verdict::kDone
           : own == ELASTIC_ABORTED ? elastic::internal::Verdict::kAborted
                                    : elastic::internal::Verdict::kFailed;
  });
  const bool failed = !status.ok() && status.code() == StatusCode::kCancelled;
  return failed ? Remember(own, own_error) : Remember(status);
}

elastic_status elastic_finish(const elastic_call_options* options) {
  return AsMember("elastic_finish", options,
                  [](Session::Deadline deadline) { return process.session->Finish(deadline); });
}

elastic_status elastic_get_recovery_stamps(elastic_recovery_stamps* stamps) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  const auto times = process.session->recovery_times();
  return Remember(FillStruct(stamps,
                             {.struct_size = 0,
                              .fenced_ns = times.fenced,
                              .bell_heard_ns = times.bell_heard,
                              .roster_came_ns = times.roster_came,
                              .edges_up_ns = times.edges_up,
                              .restored_ns = times.restored},
                             sizeof(elastic_recovery_stamps)));
}

}  // extern "C"
