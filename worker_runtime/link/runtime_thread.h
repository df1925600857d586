#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "collectives/transport/context.h"
#include "worker_runtime/link/agent_socket.h"
#include "worker_runtime/link/member.h"
#include "worker_runtime/link/worker_page.h"

namespace elastic::internal {

// The runtime's one thread: waits in one epoll set for the agent's frames, the bell, the data
// plane's connections, the beat's timer and the program's thread, and feeds the member. It holds
// the owner mutex for its whole life, so its death is this worker's. It never waits for anything
// else, because a recovery is as fast as this loop.
//
// It ends the process when the agent is gone or the deadline on the page has passed: a worker that
// nobody supervises must not train on (P21, P23).
class RuntimeThread {
 public:
  // All must outlive the thread; the context is used by it alone from Start to Stop.
  struct Parts {
    Member& member;
    AgentSocket& socket;
    WorkerPage& page;
    Context& context;
    int bell_fd;
    int wake_fd;
  };
  explicit RuntimeThread(Parts parts) : parts_(parts) {}
  ~RuntimeThread() { Stop(); }
  RuntimeThread(const RuntimeThread&) = delete;
  RuntimeThread& operator=(const RuntimeThread&) = delete;

  // Starts the thread and waits until it holds the owner mutex. Errors: those of the set-up.
  Status Start();
  // Tells the agent that this worker leaves, then joins. More than once is harmless.
  void Stop();

 private:
  Status SetUp();
  void Watch(int fd, uint32_t events);
  void Loop();
  void OnEvent(int fd, uint32_t events);
  void OnBeat();
  void OnFrames();
  void OnFrame(const local::Frame& frame);
  void DoLinkWork();
  void Do(const WorkerAction& action);
  void Connect(const Roster& roster);
  void ConnectMore(const Member::Wanted& wanted);
  void EdgesFailed(const GenerationId& generation, const Context::Failure& failure);
  void RetryEdges(const worker_action::RetryEdges& retry);
  void Ask(const worker_action::Fetch& fetch);
  void Fetch(const worker_action::Fetch& fetch);
  void FetchEnded(const worker_action::Fetch& fetch, const StatusOr<Held>& held);
  void BeginTransfer();
  void StopTransfer();
  void Leave();

  const Parts parts_;
  UniqueFd epoll_;
  UniqueFd timer_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  local::RosterAssembler rosters_;
  // Generations of which a failed edge was told; when they are tried again, once the core said so.
  std::map<GenerationNumber, std::optional<Instant>> retries_;
  std::set<GenerationNumber> warned_of_;
  std::optional<GenerationId> transfer_wanted_;  // accepted, not begun yet
  GenerationId asked_in_;
  std::optional<WorkerIncarnation> asking_;     // a fetch from it is under way
  std::set<WorkerIncarnation> failed_holders_;  // in that generation, since the newest pause
  struct Postponed {
    worker_action::Fetch fetch;
    Instant until;
  };
  std::optional<Postponed> postponed_;
  bool left_ = false;
  bool watching_writes_ = false;
};

}  // namespace elastic::internal
