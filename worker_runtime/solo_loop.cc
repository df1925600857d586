#include "rendezvous/base/log.h"
#include "worker_runtime/solo_session.h"

// The program's own loop in a world of one: nothing ever happens but its own end.

namespace elastic::internal {

Standing SoloSession::standing() const {
  if (done_) {
    return Standing::kFinished;
  }
  return joined_ ? Standing::kMember : Standing::kStarting;
}

std::vector<MemberView> SoloSession::members() const {
  if (!joined_) {
    return {};
  }
  return {MemberView{.rank = 0,
                     .previous_rank = -1,
                     .slot = 0,
                     .host = "localhost",
                     .data = {.address = "127.0.0.1", .port = 0},
                     .incarnation = incarnation()}};
}

StatusOr<LoopEvent> SoloSession::Poll() {
  if (done_) {
    return LoopEvent::kRestore;
  }
  return stop_requested_ ? LoopEvent::kStopAt : LoopEvent::kContinue;
}

StatusOr<int> SoloSession::EventFd() {
  StatusOr<int> descriptor = loop_bell_.Descriptor();
  RingLoop();
  return descriptor;
}

void SoloSession::RingLoop() { loop_bell_.Ring(!joined_ || done_ || stop_requested_); }

Status SoloSession::Put(const std::string& key, std::string value, Deadline) {
  const auto [at, added] = store_.try_emplace(key, value);
  if (!added && at->second != value) {
    return InvalidArgumentError(
        StrCat("key '", key,
               "' holds other bytes: a value does not change once it is put, so use "
               "another key for each value"));
  }
  return OkStatus();
}

StatusOr<std::string> SoloSession::Get(const std::string& key, Deadline) {
  const auto found = store_.find(key);
  if (found == store_.end()) {
    return FailedPreconditionError(
        StrCat("key '", key, "' was not put, and this is a world of one: nobody else will put it"));
  }
  return found->second;
}

}  // namespace elastic::internal
