#include "rendezvous/base/status.h"

#include <cerrno>
#include <cstring>

namespace elastic::internal {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "OK";
    case StatusCode::kCancelled: return "CANCELLED";
    case StatusCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound: return "NOT_FOUND";
    case StatusCode::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition: return "FAILED_PRECONDITION";
    case StatusCode::kAborted: return "ABORTED";
    case StatusCode::kInternal: return "INTERNAL";
    case StatusCode::kUnavailable: return "UNAVAILABLE";
    case StatusCode::kDataLoss: return "DATA_LOSS";
  }
  return "UNKNOWN";
}

std::string Status::ToString() const {
  if (ok()) {
    return "OK";
  }
  return std::string(StatusCodeName(code_)) + ": " + message_;
}

Status CancelledError(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }
Status InvalidArgumentError(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status DeadlineExceededError(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}
Status NotFoundError(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status ResourceExhaustedError(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status FailedPreconditionError(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
Status AbortedError(std::string message) { return {StatusCode::kAborted, std::move(message)}; }
Status InternalError(std::string message) { return {StatusCode::kInternal, std::move(message)}; }
Status UnavailableError(std::string message) {
  return {StatusCode::kUnavailable, std::move(message)};
}
Status DataLossError(std::string message) { return {StatusCode::kDataLoss, std::move(message)}; }

Status ErrnoError(int error_number, std::string_view what) {
  std::string message = std::string(what) + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOENT: return NotFoundError(std::move(message));
    case EACCES:
    case EPERM: return FailedPreconditionError(std::move(message));
    case EINVAL:
    case ENAMETOOLONG: return InvalidArgumentError(std::move(message));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC: return ResourceExhaustedError(std::move(message));
    case ETIMEDOUT: return DeadlineExceededError(std::move(message));
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case EPIPE: return UnavailableError(std::move(message));
    default: return InternalError(std::move(message));
  }
}

}  // namespace elastic::internal
