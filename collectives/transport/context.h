#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectives/limits.h"
#include "collectives/types.h"

namespace elastic::internal {

class Mesh;

// Committed state that can be served. `bytes` stays valid and unchanged until the transfer that
// asked for it has ended or the generation is over.
struct StateView {
  Held held;
  std::span<const std::byte> bytes;
};

// Answers requests for state. Called from Context::Progress, so it must not block.
class StateSource {
 public:
  virtual ~StateSource() = default;
  enum class Verdict { kNow, kLater, kNever };
  struct Answer {
    Verdict verdict = Verdict::kNever;
    StateView view;
  };
  // `whose` is the worker whose copy is wanted (an agent serves several), `generation` the one that
  // the asker wants to enter. kLater: the request is kept and asked again at the next
  // Context::RetryRequests (a holder that has not passed the boundary yet).
  virtual Answer Offer(const GenerationId& generation, WorkerIncarnation whose) = 0;
  // The transfer that Offer allowed has ended, one way or the other.
  virtual void Done(const GenerationId& generation, WorkerIncarnation asker) = 0;
};

// What a process has for all its life on the data plane: the listening socket, and the dials,
// handshakes and state transfers under way. Everything here is non-blocking and belongs to one
// thread (the runtime's), which calls Progress when event_fd() is readable. A data connection
// belongs to one generation, fixed by its hello {magic, version, job id, job nonce, generation
// identity, channel, from, to}; the accepting side answers before a byte of payload is used. A
// hello for a generation that this side has not been told of yet waits (bounded, named limits).
class Context {
 public:
  // Lowered by tests.
  struct Limits {
    size_t unread_hellos = kUnreadHellosMax;
    size_t waiting_hellos = kWaitingHellosMax;
    Duration hello_read = kHelloReadLimit;
    Duration hello_wait = kHelloWaitLimit;
    Duration dial = kDialLimit;
  };
  struct Options {
    std::string listen_address;  // numeric; port is chosen by the kernel
    std::string job_id;
    uint64_t job_nonce = 0;
    WorkerIncarnation self;
    StateSource* source = nullptr;  // may be null: nothing to serve
    // Gives a mesh that was handed out back if it was not used yet, so that an edge of it which
    // broke can be made anew; null if it was used. Called from Progress. Empty: meshes are used at
    // once.
    std::function<std::unique_ptr<Mesh>(const GenerationId&, Channel)> give_back;
    Limits limits;
  };
  static StatusOr<std::unique_ptr<Context>> Create(Options options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // A process that is offered again as a newcomer has a new incarnation (P20). Connections of the
  // old one are the caller's to cancel.
  void SetSelf(WorkerIncarnation self);

  Endpoint endpoint() const;
  int event_fd() const;  // an epoll set: to be watched for input, level-triggered
  void Progress();
  // Earliest time at which Progress should be called even without an event (handshake limits).
  std::optional<Instant> NextDeadline() const;

  // Connects this process's edges of `channel` in `roster`, once: the lower rank dials, the higher
  // accepts, all in parallel. `done` is called from Progress (or from here when there are no
  // edges): with the mesh, or with an error. After an error the edges that stand are kept;
  // RetryEdges makes the others anew, and `done` is called again (it may be before: the lower rank
  // dials again when it likes). It is also called again with an error after Options::give_back gave
  // the mesh back. Cancel drops it silently.
  struct Failure {
    Status status;                          // ABORTED: the generation is over at the other end
    std::optional<WorkerIncarnation> peer;  // at the other end, if it may be at fault
  };
  using MeshDone = std::function<void(tl::expected<std::unique_ptr<Mesh>, Failure>)>;
  void Connect(const Roster& roster, Channel channel, MeshDone done);
  // Both channels; does nothing where no edge has failed.
  void RetryEdges(GenerationNumber generation);

  // Asks `holder` for the resume version of `roster`. `offered` is called when the holder answers;
  // the transfer starts when AcceptOffer gives the memory to fill (held.bytes is known from
  // `bytes`). `done` is called with the verified state (checksum equals the offer's digest), or the
  // error. One fetch at a time.
  struct Offer {
    Held held;
    size_t bytes = 0;
  };
  void Fetch(const Roster& roster, const RosterEntry& holder, std::function<void(Offer)> offered,
             std::function<void(StatusOr<Held>)> done);
  void AcceptOffer(std::span<std::byte> target);
  // Drops the fetch silently; the memory for it is not touched any more.
  void StopFetch();

  // Ask the source again for every request answered kLater.
  void RetryRequests();
  // Drops dials, handshakes, waiting hellos, requests and transfers of generations <= up_to. The
  // meshes already handed out are their owners' to abort.
  void Cancel(GenerationNumber up_to);

 private:
  struct Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::internal
