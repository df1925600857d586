#include "rendezvous/base/log.h"
#include "worker_runtime/link/member.h"

// Put and get: frames to the agent, which asks the server. The program's thread sleeps on the
// condition, which the runtime's thread notifies of the answer as of the generation's end.

namespace elastic::internal {

Status Member::Put(const std::string& key, std::string value, Deadline deadline) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CallStatus());
  const local::PutCall call{.request = ++store_request_,
                            .put = {.key = {call_->id, key}, .value = std::move(value)}};
  return AskStore(local::PutFrame(call),
                  StrCat("the server had not confirmed key '", key,
                         "'; it may yet be put, and putting the same bytes again is no error"),
                  deadline)
      .status();
}

StatusOr<std::string> Member::Get(const std::string& key, Deadline deadline) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CallStatus());
  const local::GetCall call{.request = ++store_request_, .key = {call_->id, key}};
  return AskStore(
      local::GetFrame(call),
      StrCat("nobody had put key '", key, "' in generation ", ToString(call_->id.number)),
      deadline);
}

StatusOr<std::string> Member::AskStore(const local::Frame& frame, const std::string& what,
                                       Deadline deadline) {
  store_reply_.reset();
  Send(frame);
  if (parts_.socket.has_unsent()) {
    WakeRuntime();
  }
  while (!store_reply_) {
    RETURN_IF_ERROR(CallStatus());
    if (!WaitUntil(deadline)) {
      return DeadlineExceededError(StrCat("the deadline of the call has passed: ", what));
    }
  }
  const local::StoreReply reply = *std::exchange(store_reply_, std::nullopt);
  if (reply.code != StatusCode::kOk) {
    return Status(reply.code, reply.bytes);
  }
  return reply.bytes;
}

void Member::StoreAnswered(local::StoreReply reply) {
  MutexLock lock(mutex_);
  if (reply.request == store_request_) {
    store_reply_ = std::move(reply);
    changed_.notify_all();
  }
}

}  // namespace elastic::internal
