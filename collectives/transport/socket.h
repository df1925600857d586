#pragma once

#include <string>

#include "rendezvous/base/ids.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// All sockets here are non-blocking and close-on-exec: a worker's children must not keep its
// connections open, or its death would reach nobody. A child that forks without exec keeps them all
// the same; an abort therefore calls shutdown, which ends the connection whoever else holds it.

struct Listener {
  UniqueFd socket;
  Endpoint endpoint;
};
// Errors: INVALID_ARGUMENT if `address` is no numeric address; else as the kernel says.
StatusOr<Listener> Listen(const std::string& address);
// Begins to connect; writable when that has ended, see DialResult. Errors: UNAVAILABLE when the
// other end or the way to it is to blame, anything else when this end is.
StatusOr<UniqueFd> Dial(const Endpoint& to);
// OK if the connection stands; else why not.
Status DialResult(int socket);
// OK if `error` (an errno) is no shortage of this process or host; else RESOURCE_EXHAUSTED with
// what there is too little of and the knob for it.
Status ShortageOf(int error, const std::string& what);
// Invalid if nobody is waiting (or the one who was has gone).
UniqueFd Accept(int listener);

// Non-blocking and close-on-exec; invalid when the process has no descriptor left.
UniqueFd NewEventFd();
void RingEventFd(int fd);
void DrainEventFd(int fd);
UniqueFd NewEpoll();

}  // namespace elastic::internal
