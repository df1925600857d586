#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "proto/local/control_page.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/report.h"
#include "worker_runtime/link/agent_socket.h"

namespace elastic::internal::testing {

// The agent's end of one worker's link, played by a test step by step: real socket, real frames,
// real page, state and bell. Calls wait at most kPatience for the worker and fail the test after
// it.
class ScriptedAgent {
 public:
  static constexpr int kPatienceMs = 20000;

  // Listens on `folder`/NAME.sock for a worker that will be `self`.
  ScriptedAgent(const std::string& folder, WorkerIncarnation self, int32_t slot);
  ~ScriptedAgent();
  ScriptedAgent(const ScriptedAgent&) = delete;
  ScriptedAgent& operator=(const ScriptedAgent&) = delete;

  const std::string& path() const { return path_; }
  WorkerIncarnation self() const { return self_; }
  local::ControlPage& page() { return *page_; }
  int state_fd() const { return state_.get(); }

  // Accepts the worker, reads HELLO and answers WELCOME. `Refuse` answers REFUSED.
  void Welcome();
  void Refuse(const std::string& message);

  // The next frame of that kind; others before it are dropped.
  local::Frame Await(local::FrameKind kind);
  // Waits for READY and gives the entry of this worker in a roster.
  RosterEntry AwaitReady();

  void Send(local::Frame frame);
  void SendRoster(const Roster& roster);
  // As the agent core has it done: write the identity, set the word, ring.
  void Reset(const GenerationId& generation);
  void Fence();
  CommitWord word() const;
  Held held() const;
  // The futex word of the owner mutex.
  uint32_t OwnerWord() const;
  Phase phase() const { return static_cast<Phase>(page_->phase.load()); }
  // The bytes of the state that the held slot names, as a copy server would read them.
  std::vector<std::byte> HeldBytes() const;
  // Ends the connection as a dying agent does.
  void CloseLink();

 private:
  void Accept();
  void Ring();

  const std::string path_;
  const WorkerIncarnation self_;
  const int32_t slot_;
  UniqueFd listener_;
  UniqueFd page_fd_;
  UniqueFd state_;
  UniqueFd bell_;
  UniqueFd link_;
  local::ControlPage* page_ = nullptr;
};

// A roster of these workers in rank order, with its digest. `parent` 0: the first generation.
struct RosterPlan {
  uint32_t number = 1;
  uint32_t parent = 0;
  GenerationKind kind = GenerationKind::kInstalled;
  Held resume;
};
Roster MakeRoster(const RosterPlan& plan, std::vector<RosterEntry> entries);

}  // namespace elastic::internal::testing
