#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/base/report.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

// The agent's end of its stream to the rendezvous server: connects, registers, reconnects by
// itself (bounded back-off), keeps at most one write in flight and the newest report behind it.
// Callbacks come from threads of gRPC and of the link, one at a time, and must return quickly (post
// to a queue).
class AgentLink {
 public:
  struct Options {
    std::string server;  // gRPC target, e.g. unix:/run/x/rendezvous.sock
    std::string host;
    int32_t slots = 1;
    std::string job_id;
    bool replaces = false;  // an agent of this host was started before it
  };
  struct Callbacks {
    // At each (re)connect, with the server's life.
    std::function<void(AgentIncarnation, ServerIncarnation)> registered;
    std::function<void(Directive)> directive;
    std::function<void(Status)> lost;     // stream ended; reconnecting
    std::function<void(Status)> refused;  // for good: superseded, wrong job, job over
  };
  AgentLink(Options options, Callbacks callbacks);
  ~AgentLink();  // cancels the stream and waits for its last callback; not from a callback

  // Replaces the report that waits to be written; from any thread. The link remembers the agent's
  // incarnation for its reconnects.
  void Send(AgentReport report);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
