#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace elastic::internal {

// What the caller should do next, in Abseil's names and numbers (style rule 14).
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,     // the request can never work
  kDeadlineExceeded = 4,    // the time-out that the call or a flag named has passed
  kNotFound = 5,            // unknown worker, host or file
  kResourceExhausted = 8,   // a limit of limits.h was reached
  kFailedPrecondition = 9,  // do not repeat until somebody changes the set-up
  kAborted = 10,            // your generation is over: rendezvous again
  kInternal = 13,
  kUnavailable = 14,  // repeat this call
  kDataLoss = 15,     // bytes that do not match their checksum
};

std::string_view StatusCodeName(StatusCode code);

// An operating error as a value. A message says what was wanted, what was found and which knob
// changes it. Not absl::Status: this type is part of libelastic, which carries no Abseil.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }
Status InvalidArgumentError(std::string message);
Status DeadlineExceededError(std::string message);
Status NotFoundError(std::string message);
Status ResourceExhaustedError(std::string message);
Status FailedPreconditionError(std::string message);
Status AbortedError(std::string message);
Status InternalError(std::string message);
Status UnavailableError(std::string message);
Status DataLossError(std::string message);
Status CancelledError(std::string message);
// Maps an errno of a system call to the code a caller can act on; `what` names the call.
Status ErrnoError(int error_number, std::string_view what);

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] StatusOr : public tl::expected<T, Status> {
 public:
  using tl::expected<T, Status>::expected;
  StatusOr(Status status) : tl::expected<T, Status>(tl::unexpect, std::move(status)) {}

  bool ok() const { return this->has_value(); }
  Status status() const { return ok() ? OkStatus() : this->error(); }
};

}  // namespace elastic::internal

#define ELASTIC_CONCAT_INNER(a, b) a##b
#define ELASTIC_CONCAT(a, b) ELASTIC_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                             \
  do {                                                          \
    ::elastic::internal::Status elastic_status_ = (expression); \
    if (!elastic_status_.ok()) {                                \
      return elastic_status_;                                   \
    }                                                           \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(ELASTIC_CONCAT(elastic_or_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_INNER(temporary, target, expression) \
  auto temporary = (expression);                              \
  if (!temporary.ok()) {                                      \
    return temporary.status();                                \
  }                                                           \
  target = std::move(*temporary)
