#pragma once

#include <future>
#include <memory>
#include <string>

#include "worker_runtime/link/agent_session.h"
#include "worker_runtime/link/testing/scripted_agent.h"

namespace elastic::internal::testing {

// A folder of its own for a test's sockets, gone at the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A worker in this process and the agent that a test plays for it. State: one number; none with
// `state_bytes` 0.
class PlayedWorker {
 public:
  PlayedWorker(const TestFolder& folder, uint32_t counter, size_t state_bytes = sizeof(int64_t));
  ~PlayedWorker();

  ScriptedAgent& agent() { return agent_; }
  Session& session() { return *session_; }
  int64_t& current() { return *static_cast<int64_t*>(session_->current()); }
  int64_t& next() { return *static_cast<int64_t*>(session_->next()); }

  // In a thread that stands for the program's; the result comes when the call returns.
  std::future<Status> Join();
  std::future<Status> Commit(uint64_t step);
  std::future<Status> Finish();
  std::future<Status> Sum(int64_t* value);
  // The entry in rosters, once the worker has declared readiness.
  const RosterEntry& entry() const { return entry_; }
  // Starts Join and waits for READY.
  std::future<Status> JoinUntilReady();

 private:
  ScriptedAgent agent_;
  std::unique_ptr<Session> session_;
  RosterEntry entry_;
};

// The status, or the end of the test when it does not come.
Status Result(std::future<Status>& call);
bool Pending(std::future<Status>& call);

}  // namespace elastic::internal::testing
