#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <string>

#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/agent_session.h"
#include "worker_runtime/link/testing/played_worker.h"

namespace elastic::internal::testing {
namespace {

// A process with a worker in it that waits for a generation.
class WorkerProcess {
 public:
  explicit WorkerProcess(const ScriptedAgent& agent) : pid_(fork()) {
    if (pid_ == 0) {
      auto session = AgentSession::Open({.socket_path = agent.path(), .job_id = "job"});
      _exit(session.ok() && (*session)->Join(std::nullopt).ok() ? 0 : 1);
    }
  }
  ~WorkerProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  int Wait() {
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

bool Killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

TEST_CASE("A worker whose agent is gone does not live on") {
  TestFolder folder;
  ScriptedAgent agent(folder.path(), {AgentIncarnation{1}, 1}, 0);
  WorkerProcess process(agent);
  agent.Welcome();
  agent.AwaitReady();
  agent.CloseLink();
  REQUIRE(Killed(process.Wait()));
}

TEST_CASE("A worker ends itself when the deadline on its page has passed") {
  TestFolder folder;
  ScriptedAgent agent(folder.path(), {AgentIncarnation{1}, 1}, 0);
  WorkerProcess process(agent);
  agent.Welcome();
  agent.AwaitReady();
  agent.page().kill_at_ns = ToNanoseconds(Now());
  REQUIRE(Killed(process.Wait()));
}

TEST_CASE("The death of a worker shows on its owner mutex") {
  TestFolder folder;
  ScriptedAgent agent(folder.path(), {AgentIncarnation{1}, 1}, 0);
  {
    WorkerProcess process(agent);
    agent.Welcome();
    agent.AwaitReady();
  }
  REQUIRE((agent.OwnerWord() & 0x40000000u) != 0);  // FUTEX_OWNER_DIED
}

TEST_CASE("A worker that shuts down without a finished job leaves on purpose, as no death") {
  TestFolder folder;
  ScriptedAgent agent(folder.path(), {AgentIncarnation{1}, 1}, 0);
  auto opened = std::async(std::launch::async, [&] {
    return AgentSession::Open({.socket_path = agent.path(), .job_id = "job"}).value();
  });
  agent.Welcome();
  std::unique_ptr<Session> session = opened.get();
  auto joined = std::async(std::launch::async,
                           [&] { return session->Join(Now() + std::chrono::milliseconds(1)); });
  agent.AwaitReady();
  REQUIRE_FALSE(joined.get().ok());
  session.reset();
  agent.Await(local::FrameKind::kLeaving);
  REQUIRE((agent.OwnerWord() & 0x7fffffffu) == 0);  // neither an owner nor FUTEX_OWNER_DIED
}

TEST_CASE("An agent's refusal is the error of elastic_init, with its reason") {
  TestFolder folder;
  ScriptedAgent agent(folder.path(), {AgentIncarnation{1}, 1}, 0);
  auto opened = std::async(std::launch::async, [&] {
    return AgentSession::Open({.socket_path = agent.path(), .job_id = "job"}).status();
  });
  agent.Refuse("job id is wrong");
  const Status status = opened.get();
  REQUIRE(status.code() == StatusCode::kFailedPrecondition);
  REQUIRE_THAT(status.message(), Catch::Contains("job id is wrong"));
}

// Signals are the program's: the runtime's thread must not take one away.
TEST_CASE("The runtime's thread has its name and blocks all signals") {
  TestFolder folder;
  PlayedWorker worker(folder, 1);
  DIR* tasks = opendir("/proc/self/task");
  REQUIRE(tasks != nullptr);
  std::string blocked;
  while (const dirent* task = readdir(tasks)) {
    std::ifstream status(std::string("/proc/self/task/") + task->d_name + "/status");
    bool ours = false;
    for (std::string line; std::getline(status, line);) {
      ours = ours || line == "Name:\telastic-runtime";
      if (ours && line.starts_with("SigBlk:")) {
        blocked = line.substr(8);
      }
    }
  }
  closedir(tasks);
  // Linux never blocks SIGKILL (9) and SIGSTOP (19); glibc keeps 32 and 33 for itself.
  REQUIRE(blocked == "fffffffe7ffbfeff");
}

}  // namespace
}  // namespace elastic::internal::testing
