#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "launcher/agent/agent_driver.h"
#include "launcher/agent/agent_test_support.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

inline constexpr AgentIncarnation kAgent{5};
inline constexpr WorkerIncarnation kWorker[] = {{kAgent, 1}, {kAgent, 2}, {kAgent, 3}};

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read_end.Reset(ends[0]);
    write_end.Reset(ends[1]);
  }
  UniqueFd read_end, write_end;
};

// An agent with `slots` workers in this process, and the server's part of its stream.
class TestAgent {
 public:
  struct Setup {
    std::vector<std::string> command = {ELASTIC_AGENT_TEST_WORKER};
    int slots = 2;
    Duration grace_period = std::chrono::seconds(5);
    bool read_output = true;
  };
  explicit TestAgent(Setup setup) {
    BlockChildSignal();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    bootstrap_.job_id = "job";
    bootstrap_.job_nonce = 99;
    bootstrap_.host = "here";
    bootstrap_.slots = setup.slots;
    bootstrap_.server = "unix:" + folder_.path() + "/rendezvous.sock";
    bootstrap_.folder = folder_.path();
    bootstrap_.command = setup.command;
    bootstrap_.grace_period = setup.grace_period;
    traces_ = TracesIn(folder_.path());
    auto guardian = GuardianClient::Fork(bootstrap_.job_id, traces_);
    REQUIRE(guardian.ok());
    guardian_ = std::move(*guardian);
    fcntl(signals_.read_end.get(), F_SETFL, O_NONBLOCK);
    lines_file_ = folder_.path() + "/output";
    const UniqueFd file(open(lines_file_.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
    output_fd_.Reset(
        fcntl(setup.read_output ? file.get() : stuffed_.write_end.get(), F_DUPFD_CLOEXEC, 3));
    output_ = std::make_unique<OutputPump>(output_fd_.get(), output_fd_.get(), bootstrap_.host);
    auto driver = AgentDriver::Create({.bootstrap = bootstrap_,
                                       .traces = traces_,
                                       .guardian = *guardian_,
                                       .inbox = inbox_,
                                       .output = *output_,
                                       .bootstrap_fd = launcher_.read_end.get(),
                                       .signals_fd = signals_.read_end.get(),
                                       .send_report = [this](AgentReport report) {
                                         const std::lock_guard lock(mutex_);
                                         report_ = std::move(report);
                                         came_.notify_all();
                                       }});
    REQUIRE(driver.ok());
    driver_ = std::move(*driver);
    thread_ = std::thread([this] { exit_code_ = driver_->Run(); });
  }
  ~TestAgent() {
    if (thread_.joinable()) {
      guardian_->page().kill_at_ns = 1;  // a failed test: nothing may wait
      Direct([](Directive& directive) { directive.stop = StopMode::kImmediate; });
      CloseLauncher();
      thread_.join();
    }
    driver_.reset();
    guardian_.reset();
    static ProcessList scratch;
    KillAllDescendants(scratch);
    stuffed_.read_end.Reset();
    output_.reset();
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  void Register() { inbox_.Post(LinkRegistered{kAgent}); }
  // Changes the directive and sends it.
  void Direct(const std::function<void(Directive&)>& change) {
    directive_.server = ServerIncarnation{1};
    directive_.agent = kAgent;
    ++directive_.sequence;
    change(directive_);
    inbox_.Post(LinkDirective{directive_});
  }
  void WantSlots(std::vector<int32_t> slots) {
    Direct([&](Directive& directive) { directive.slots = slots; });
  }
  AgentReport WaitFor(const std::function<bool(const AgentReport&)>& condition) {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, kPatience, [&] { return report_ && condition(*report_); })) {
      lock.unlock();
      FAIL("the report did not come; the workers said:\n" << Lines());
    }
    return *report_;
  }
  AgentReport WaitForReady(size_t count) {
    return WaitFor([&](const AgentReport& report) {
      return std::ranges::count_if(report.workers, [](const WorkerReport& worker) {
               return worker.joined;
             }) == static_cast<long>(count);
    });
  }
  // Forms generation 1 of the workers of `report` and waits until all have entered.
  Roster Install(const AgentReport& report) {
    Roster roster;
    roster.id = {ServerIncarnation{1}, GenerationNumber{1}, 0};
    for (const WorkerReport& worker : report.workers) {
      RosterEntry& entry = roster.entries.emplace_back();
      entry.incarnation = worker.incarnation;
      entry.rank = static_cast<int32_t>(roster.entries.size()) - 1;
      entry.host = "here";
      entry.slot = worker.slot;
      entry.data = worker.data;
    }
    roster.id.roster_digest = RosterDigest(roster);
    Direct([&](Directive& directive) { directive.installed = roster; });
    return roster;
  }
  int WaitForEnd() {
    thread_.join();
    return exit_code_;
  }
  void CloseLauncher() { launcher_.write_end.Reset(); }
  std::string Lines() const {
    std::ostringstream text;
    text << std::ifstream(lines_file_).rdbuf();
    return text.str();
  }
  // A worker's output comes by a thread of its own, perhaps later than the report of its death.
  bool WaitForLine(const std::string& part) const {
    const Instant limit = Now() + kPatience;
    while (Lines().find(part) == std::string::npos && Now() < limit) {
      poll(nullptr, 0, 5);
    }
    return Lines().find(part) != std::string::npos;
  }
  void FinishOutput() { output_->Finish(std::chrono::seconds(2)); }
  const std::string& folder() const { return folder_.path(); }
  GuardianClient& guardian() { return *guardian_; }
  const char* socket() const { return traces_.worker_socket; }
  UniqueFd& stuffed_reader() { return stuffed_.read_end; }

 private:
  TemporaryFolder folder_;
  AgentBootstrap bootstrap_;
  Traces traces_;
  std::unique_ptr<GuardianClient> guardian_;
  Pipe launcher_, signals_, stuffed_;
  std::string lines_file_;
  UniqueFd output_fd_;
  std::unique_ptr<OutputPump> output_;
  Inbox inbox_;
  std::unique_ptr<AgentDriver> driver_;
  Directive directive_;
  std::thread thread_;
  int exit_code_ = -1;

  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<AgentReport> report_;
};

inline const WorkerReport* Of(const AgentReport& report, WorkerIncarnation incarnation) {
  const auto found = std::ranges::find(report.workers, incarnation, &WorkerReport::incarnation);
  return found == report.workers.end() ? nullptr : &*found;
}

inline bool IsDead(const AgentReport& report, WorkerIncarnation incarnation) {
  const WorkerReport* worker = Of(report, incarnation);
  return worker != nullptr && worker->life == WorkerLife::kDead;
}

inline std::vector<std::string> Command(const std::string& mode) {
  return {ELASTIC_AGENT_TEST_WORKER, mode};
}

// Two members in generation 1.
struct Pair {
  explicit Pair(TestAgent& agent) {
    agent.Register();
    agent.WantSlots({0, 1});
    roster = agent.Install(agent.WaitForReady(2));
    entered = agent.WaitFor([](const AgentReport& report) {
      return std::ranges::count_if(report.workers, &WorkerReport::entered) == 2;
    });
  }
  pid_t pid(int index) const { return static_cast<pid_t>(Of(entered, kWorker[index])->pid); }
  Roster roster;
  AgentReport entered;
};

}  // namespace elastic::internal
