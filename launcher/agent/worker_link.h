#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proto/local/frames.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/ids.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The agent's end of the workers' Unix socket: accepts, finds out whom it talks to, checks frames.
// Whatever a process sends, the worst that follows is that its connection is refused with a
// message. All of it on the agent's thread; nothing here waits.
class WorkerLink {
 public:
  // What the agent knows and the socket does not.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The worker that this process belongs to. nullopt: not known yet, a spawn is under way; asked
    // again at each SpawnEnded. Errors: FAILED_PRECONDITION with what to tell the process.
    virtual StatusOr<std::optional<WorkerIncarnation>> Identify(pid_t pid) = 0;
    struct Greeting {
      local::Welcome welcome{};
      int page = -1, state = -1, bell = -1;  // stay the owner's
    };
    // nullopt: its spawn is under way; asked again at its SpawnEnded. Errors: as above.
    virtual StatusOr<std::optional<Greeting>> Greet(WorkerIncarnation incarnation, pid_t pid) = 0;
    // A checked frame of an identified worker, HELLO excepted. Errors: the frame is refused.
    virtual Status Said(WorkerIncarnation incarnation, local::FrameKind kind,
                        std::span<const std::byte> frame) = 0;
  };

  // Listens on a Unix socket at `path`, which nobody but this user may connect to. `owner` outlives
  // the link. Errors: of socket, bind, listen, naming the path.
  static StatusOr<std::unique_ptr<WorkerLink>> Listen(const std::string& path, std::string job_id,
                                                      Owner& owner);
  ~WorkerLink();

  int fd() const { return epoll_.get(); }  // readable: Progress
  void Progress();
  // The owner knows more of this worker now.
  void SpawnEnded(WorkerIncarnation incarnation);
  // Accepting had failed, with no descriptors left for instance, and may go now.
  void RetryAccept();
  // Reads what the worker has sent, to the end if it has closed (P30).
  void Drain(WorkerIncarnation incarnation);
  void Send(WorkerIncarnation incarnation, local::Frame frame);
  // The incarnation is over.
  void Close(WorkerIncarnation incarnation);

 private:
  struct Connection {
    UniqueFd fd;
    pid_t pid = 0;
    std::optional<WorkerIncarnation> who;
    bool hello_waits = false;                // said HELLO, no WELCOME yet
    std::optional<WorkerIncarnation> claim;  // identified, to be greeted when its spawn is done
    std::deque<local::Frame> outbox;
    bool closing = false;
  };
  using Connections = std::map<int, Connection>;

  WorkerLink(std::string job_id, Owner& owner) : job_id_(std::move(job_id)), owner_(owner) {}
  void Accept();
  void WatchListener(bool watch);
  // False when nothing more can be read at present.
  bool ReadFrame(Connection& connection);
  Status HandleFrame(Connection& connection, std::span<const std::byte> frame);
  Status HandleHello(Connection& connection, std::span<const std::byte> frame);
  Status TryIdentify(Connection& connection);
  void Refuse(Connection& connection, const Status& reason);
  void Flush(Connection& connection);
  void WatchForRoom(const Connection& connection);
  Connection* Find(WorkerIncarnation incarnation);
  void Sweep();

  const std::string job_id_;
  Owner& owner_;
  UniqueFd listener_;
  UniqueFd epoll_;
  bool accepting_ = true;      // else the listener is not watched
  bool told_failure_ = false;  // of accepting, since the last success
  Connections connections_;
};

}  // namespace elastic::internal
