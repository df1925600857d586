#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/core/job.h"
#include "rendezvous/core/membership.h"
#include "rendezvous/store/journal.h"

namespace elastic::internal {

// The rendezvous server, for one job at a time: the driver thread that owns Membership, the agents'
// gRPC service on `agent_address`, and on `status_address`, a listener of its own, the read-only
// status service with health and reflection. Used in-process by elastic-run and by
// elastic-rendezvous.
class RendezvousServer {
 public:
  struct Options {
    JobSpec job;
    std::string agent_address;   // e.g. unix:/run/x/rendezvous.sock or 127.0.0.1:0
    std::string status_address;  // e.g. 127.0.0.1:0
  };
  struct Callbacks {
    std::function<void(Severity, const std::string&)> note;               // driver thread
    std::function<void(int exit_code, const std::string& reason)> ended;  // driver thread, once
  };
  // Errors: UNAVAILABLE or INVALID_ARGUMENT when an address cannot be listened on.
  static StatusOr<std::unique_ptr<RendezvousServer>> Start(Options options, Journal& journal,
                                                           Callbacks callbacks);
  // A standing server: it has no job until a launcher submits one, and takes the next one when that
  // is over. Errors as for Start.
  static StatusOr<std::unique_ptr<RendezvousServer>> StartStanding(
      const std::string& agent_address, const std::string& status_address);
  ~RendezvousServer();  // Shutdown() if it was not called

  std::string agent_target() const;    // what an agent dials
  std::string status_address() const;  // host:port with the real port
  void Post(Event event);              // from any thread
  // The newest picture, from any thread but the driver's; an empty one after Shutdown.
  JobView View();
  // Ends streams, then the driver. Bounded by a second.
  void Shutdown();

 private:
  class Impl;
  explicit RendezvousServer(std::unique_ptr<Impl> impl);
  static StatusOr<std::unique_ptr<RendezvousServer>> Begin(std::unique_ptr<Impl> impl,
                                                           const std::string& agent_address,
                                                           const std::string& status_address,
                                                           bool submissions);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
