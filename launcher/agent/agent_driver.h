#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/copy_server.h"
#include "launcher/agent/futex_watch.h"
#include "launcher/agent/guardian_client.h"
#include "launcher/agent/inbox.h"
#include "launcher/agent/output_pump.h"
#include "launcher/agent/worker_link.h"
#include "launcher/agent/worker_table.h"
#include "launcher/base/bootstrap.h"
#include "launcher/core/agent_core.h"

namespace elastic::internal {

// Exit codes of elastic-agent besides those of AgentAction EndAgent.
inline constexpr int kAgentExitUsage = 2;
inline constexpr int kAgentExitSetup = 70;         // a socket or thread could not be made
inline constexpr int kAgentExitGuardianLost = 71;  // the launcher starts a new agent

// The thread that owns AgentCore: feeds it what all parts of the agent see and carries out what it
// decides, in the order given. It alone changes commit words (P12). Nothing on it waits but
// epoll_wait; what may be slow, output and copies, has threads of its own.
class AgentDriver final : private WorkerLink::Owner {
 public:
  // How reports get to the server; AgentLink::Send, or a test's.
  using SendReport = std::function<void(AgentReport)>;
  struct Parts {
    const AgentBootstrap& bootstrap;
    const Traces& traces;
    GuardianClient& guardian;
    Inbox& inbox;  // what the link and the futex watch post to
    OutputPump& output;
    int bootstrap_fd = 0;  // closed by the launcher's end (P21)
    int signals_fd = -1;   // signalfd of those that mean: end
    SendReport send_report;
  };
  // All that `parts` refers to outlives the driver. Errors: of sockets, naming them.
  static StatusOr<std::unique_ptr<AgentDriver>> Create(Parts parts);
  ~AgentDriver() override;

  // Until the core has ended, or the guardian has. The exit code of the agent.
  int Run();

 private:
  // An event, and the worker whose page is read before the core sees it.
  struct Pending {
    AgentEvent event;
    std::optional<WorkerIncarnation> read_page;
  };

  explicit AgentDriver(Parts parts);
  Status Start();
  Status Watch(int fd);

  // agent_driver.cc: what comes in
  void Wait();
  void HandleInbox();
  void HandleGuardian();
  void HandleGuardianNews(GuardianNews news);
  void HandleSpawned(WorkerEntry& entry, GuardianNews news);
  void HandleSignals();
  void HandleBootstrapInput();
  void CheckBeats(Instant now);
  void CheckGuardianBeat();
  void CheckWorkerBeat(WorkerEntry& entry);
  void WatchOwner(WorkerEntry& entry);
  void CheckDeadline(Instant now);
  StatusOr<std::optional<WorkerIncarnation>> Identify(pid_t pid) override;
  StatusOr<std::optional<Greeting>> Greet(WorkerIncarnation process, pid_t pid) override;
  Status Said(WorkerIncarnation process, local::FrameKind kind,
              std::span<const std::byte> frame) override;
  Status SaidOfStore(WorkerIncarnation process, local::FrameKind kind,
                     std::span<const std::byte> frame);  // agent_store_calls.cc

  // agent_actions.cc: what goes out
  void Feed(AgentEvent event, std::optional<WorkerIncarnation> read_page = std::nullopt);
  void Pump();
  void Step(AgentEvent event);
  void FillReading(AgentEvent& event);
  void ReadPage(WorkerIncarnation process);
  void ServeCopy(WorkerIncarnation process);
  void SetLabel(const agent_event::Entered& entered);
  void Carry(const agent_action::Fence& action);
  void Carry(const agent_action::Reset& action);
  void Carry(const agent_action::OfferAgain& action);
  void Carry(const agent_action::DeliverRoster& action);
  void Carry(const agent_action::DeliverFinish& action);
  void Carry(const agent_action::TellLeave& action);
  void Carry(const agent_action::AnswerStore& action);  // agent_store_calls.cc
  void Carry(const agent_action::TellStop& action);
  void Carry(const agent_action::Spawn& action);
  void Carry(const agent_action::Kill& action);
  void Carry(const agent_action::Forget& action);
  void Carry(const agent_action::Report& action);
  void Carry(const agent_action::StampDeadline& action);
  void Carry(const agent_action::Say& action);
  void Carry(const agent_action::EndAgent& action);
  void Check(const Status& guardian_status);
  std::vector<std::string> EnvironmentOf(const WorkerEntry& entry) const;

  const Parts parts_;
  AgentCore core_;
  WorkerTable table_;
  std::vector<std::unique_ptr<FutexWatch>> watches_;  // one more when those before are full
  std::unique_ptr<CopyServer> copies_;
  std::unique_ptr<WorkerLink> link_;
  UniqueFd epoll_;

  std::deque<Pending> pending_;
  std::deque<AgentAction> actions_;
  // Kept until the fences of a step are out: telling can wait.
  bool report_due_ = false;
  std::vector<agent_action::Say> says_;

  Instant kill_at_{};
  Instant next_beat_check_;
  int64_t guardian_beat_ = 0;
  int guardian_silent_checks_ = 0;
  std::optional<int> exit_code_;
};

}  // namespace elastic::internal
