#include "worker_runtime/elastic_c.h"

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "collectives/types.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/open_session.h"
#include "worker_runtime/run_loop.h"
#include "worker_runtime/session.h"

// The border between the C interface and the C++ inside: checks arguments, keeps the newest error
// of each thread, and owns the one session of this process.

namespace {

using elastic::internal::FailedPreconditionError;
using elastic::internal::InvalidArgumentError;
using elastic::internal::OkStatus;
using elastic::internal::Session;
using elastic::internal::Status;
using elastic::internal::StatusCode;
using elastic::internal::StrCat;

// The one object of a process: a C interface has no handle to hang it on, and a process has one
// rank. Never destroyed, so that nothing of ours runs at exit.
struct Process {
  std::unique_ptr<Session> session;
  std::string incarnation;
  pid_t pid = 0;
  bool inside_run = false;
};
Process& process = *new Process;

thread_local std::string last_error;
thread_local elastic_status last_status = ELASTIC_OK;

elastic_status Remember(elastic_status status, std::string message) {
  last_status = status;
  last_error = std::move(message);
  return status;
}

elastic_status Remember(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kInvalidArgument:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAborted:
    case StatusCode::kUnavailable:
    case StatusCode::kDataLoss:
      return Remember(static_cast<elastic_status>(status.code()), status.message());
    default: return Remember(ELASTIC_INTERNAL, status.message());
  }
}

Status CheckInitialised() {
  if (process.session == nullptr) {
    return FailedPreconditionError("the runtime is not initialised: call elastic_init first");
  }
  if (process.pid != getpid()) {
    return FailedPreconditionError(
        StrCat("this process was forked from the worker (pid ", process.pid,
               ") after elastic_init: only the worker itself may call the library"));
  }
  return OkStatus();
}

// Copies the members that the caller's version of the struct has.
template <class Struct>
Status FillStruct(Struct* target, Struct filled, size_t bytes_min) {
  if (target == nullptr || target->struct_size < bytes_min) {
    return InvalidArgumentError(
        "the pointer is NULL or struct_size is not set: set it to sizeof the struct");
  }
  const size_t bytes = std::min(target->struct_size, sizeof(Struct));
  filled.struct_size = target->struct_size;
  std::memcpy(target, &filled, bytes);
  return OkStatus();
}

elastic::internal::StatusOr<Session::Deadline> DeadlineOf(const elastic_call_options* options) {
  if (options == nullptr) {
    return Session::Deadline();
  }
  if (options->struct_size < sizeof(elastic_call_options) || options->timeout_ns < 0) {
    return InvalidArgumentError(StrCat("elastic_call_options with struct_size ",
                                       options->struct_size, " and timeout_ns ",
                                       options->timeout_ns, ": need sizeof the struct and >= 0"));
  }
  if (options->timeout_ns == 0) {
    return Session::Deadline();
  }
  return Session::Deadline(elastic::internal::Now() +
                           elastic::internal::Duration(options->timeout_ns));
}

elastic_status NotAMember(const char* name) {
  return Remember(ELASTIC_NOT_A_MEMBER,
                  StrCat(name,
                         ": this process is not a member of a generation yet; call "
                         "elastic_join first, or use elastic_run"));
}

// What every call that needs a membership checks first.
template <class Call>
elastic_status AsMember(const char* name, const elastic_call_options* options, Call call) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  if (!process.session->membership()) {
    return NotAMember(name);
  }
  auto deadline = DeadlineOf(options);
  if (!deadline.ok()) {
    return Remember(deadline.status());
  }
  return Remember(call(*deadline));
}

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

Status CheckReduction(const void* in, const void* out, size_t count, elastic_data_type type,
                      elastic_reduce_op op) {
  if (type < ELASTIC_FLOAT32 || type > ELASTIC_INT64) {
    return InvalidArgumentError(
        StrCat("elastic_allreduce: unknown data type ", static_cast<int>(type)));
  }
  if (op < ELASTIC_SUM || op > ELASTIC_MAX) {
    return InvalidArgumentError(
        StrCat("elastic_allreduce: unknown operation ", static_cast<int>(op)));
  }
  if (count > 0 && (in == nullptr || out == nullptr)) {
    return InvalidArgumentError(StrCat("elastic_allreduce: NULL buffer for ", count, " elements"));
  }
  return OkStatus();
}

}  // namespace

extern "C" {

const char* elastic_last_error(void) { return last_error.c_str(); }
elastic_status elastic_last_status(void) { return last_status; }
const char* elastic_version(void) { return ELASTIC_VERSION_TEXT; }

elastic_status elastic_init(const elastic_init_options* options) {
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
  return Remember(ELASTIC_OK, "");
}

elastic_status elastic_shutdown(void) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  process.session.reset();
  process.incarnation.clear();
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
  if (process.session->done()) {
    return Remember(FailedPreconditionError("elastic_join: the job is finished; exit with 0"));
  }
  if (Status status = process.session->Join(*deadline); !status.ok()) {
    return Remember(status);
  }
  if (process.session->done()) {
    return Remember(FailedPreconditionError(
        "elastic_join: the job is finished or does not need this process any more; exit with 0"));
  }
  return membership == nullptr ? Remember(ELASTIC_OK, "") : elastic_get_membership(membership);
}

elastic_status elastic_get_membership(elastic_membership* membership) {
  const auto found = MembershipFor("elastic_get_membership");
  if (!found) {
    return last_status;
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
const char* elastic_incarnation(void) { return process.incarnation.c_str(); }

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

elastic_status elastic_allreduce(const void* in, void* out, size_t count, elastic_data_type type,
                                 elastic_reduce_op op, const elastic_call_options* options) {
  return AsMember("elastic_allreduce", options, [&](Session::Deadline deadline) {
    RETURN_IF_ERROR(CheckReduction(in, out, count, type, op));
    return process.session->AllReduce(in, out, count,
                                      static_cast<elastic::internal::DataType>(type),
                                      static_cast<elastic::internal::ReduceOp>(op), deadline);
  });
}

elastic_status elastic_broadcast(void* data, size_t bytes, int32_t root,
                                 const elastic_call_options* options) {
  return AsMember("elastic_broadcast", options, [&](Session::Deadline deadline) -> Status {
    if (data == nullptr && bytes > 0) {
      return InvalidArgumentError(StrCat("elastic_broadcast: NULL buffer for ", bytes, " bytes"));
    }
    return process.session->Broadcast(data, bytes, root, deadline);
  });
}

elastic_status elastic_allgather(const void* in, void* out, size_t bytes,
                                 const elastic_call_options* options) {
  return AsMember("elastic_allgather", options, [&](Session::Deadline deadline) -> Status {
    if ((in == nullptr || out == nullptr) && bytes > 0) {
      return InvalidArgumentError(StrCat("elastic_allgather: NULL buffer for ", bytes, " bytes"));
    }
    return process.session->AllGather(in, out, bytes, deadline);
  });
}

elastic_status elastic_barrier(const elastic_call_options* options) {
  return AsMember("elastic_barrier", options,
                  [&](Session::Deadline deadline) { return process.session->Barrier(deadline); });
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
    own_error = last_error;
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
