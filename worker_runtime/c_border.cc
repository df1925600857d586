#include "worker_runtime/c_border.h"

#include "rendezvous/base/real_clock.h"

namespace elastic::internal::border {

namespace {

thread_local std::string last_error;
thread_local elastic_status last_status = ELASTIC_OK;

}  // namespace

Process& process = *new Process;

const std::string& LastError() { return last_error; }
elastic_status LastStatus() { return last_status; }

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

Status CheckNotForked() {
  if (process.session == nullptr || process.mark.Here()) {
    return OkStatus();
  }
  return FailedPreconditionError(StrCat(
      "this process was forked from the worker (pid ", process.pid,
      ") after elastic_init: only the worker itself may call the library; a child that is to "
      "be a worker is started by elastic-run, one that helps (a data loader) makes no calls"));
}

// The fork first: a child must not even look at what its parent's threads may have been changing.
Status CheckInitialised() {
  RETURN_IF_ERROR(CheckNotForked());
  if (process.session == nullptr) {
    return FailedPreconditionError("the runtime is not initialised: call elastic_init first");
  }
  return OkStatus();
}

// Up to timeout_ns: of programs that were built before there were communicators.
constexpr size_t kCallOptionsBytesMin = offsetof(elastic_call_options, communicator);

StatusOr<Session::Deadline> DeadlineOf(const elastic_call_options* options) {
  if (options == nullptr) {
    return Session::Deadline();
  }
  if (options->struct_size < kCallOptionsBytesMin || options->timeout_ns < 0) {
    return InvalidArgumentError(StrCat("elastic_call_options with struct_size ",
                                       options->struct_size, " and timeout_ns ",
                                       options->timeout_ns, ": need sizeof the struct and >= 0"));
  }
  if (options->timeout_ns == 0) {
    return Session::Deadline();
  }
  return Session::Deadline(Now() + Duration(options->timeout_ns));
}

elastic_status NotAMember(const char* name) {
  const char* remedy = "call elastic_join first, or use elastic_run";
  switch (process.session->standing()) {
    case Standing::kStarting: break;
    case Standing::kWaiting:
      remedy = "it has not been put into one yet; call elastic_join again";
      break;
    case Standing::kMember: break;
    case Standing::kFinished: remedy = "the job ends without it, or has ended; exit with 0"; break;
  }
  return Remember(ELASTIC_NOT_A_MEMBER,
                  StrCat(name, ": this process is not a member of a generation yet: ", remedy));
}

}  // namespace elastic::internal::border
