#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/local/frames.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The worker's end of the agent's Unix socket: frames of proto/local, one per message.
// Not thread-safe, but that one thread may receive while another sends.
class AgentSocket {
 public:
  struct Greeting {
    local::Welcome welcome;
    UniqueFd page;
    UniqueFd state;
    UniqueFd bell;
  };

  // Connects; does not wait for an answer. Errors: INVALID_ARGUMENT for a path that is too long;
  // UNAVAILABLE when nobody listens there.
  static StatusOr<std::unique_ptr<AgentSocket>> Connect(const std::string& path);

  // Sends HELLO and waits for WELCOME, at most kGreetingLimit; then the socket never blocks.
  // Errors: FAILED_PRECONDITION with the agent's reason when it refuses; UNAVAILABLE;
  // RESOURCE_EXHAUSTED when this process has no room for the descriptors that come with it.
  StatusOr<Greeting> Greet(const std::string& job_id);

  int fd() const { return fd_.get(); }

  // Never blocks: what the socket does not take now waits, in order, for Flush.
  void Send(local::Frame frame);
  bool has_unsent() const { return !unsent_.empty(); }
  void Flush();

  // The next frame; none when there is nothing to read now. Errors: UNAVAILABLE at the end of the
  // connection; INVALID_ARGUMENT for a frame that is too long.
  StatusOr<std::optional<local::Frame>> Receive();

 private:
  explicit AgentSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
  std::deque<local::Frame> unsent_;
  std::vector<std::byte> buffer_;
};

}  // namespace elastic::internal
