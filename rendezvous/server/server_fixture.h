#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/mutex.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/status_client.h"
#include "rendezvous/server/little_agent.h"
#include "rendezvous/server/server.h"

namespace elastic::internal {

// A real server on a Unix socket in a folder of its own, and little agents that dial it.
class ServerFixture {
 public:
  ServerFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "elastic-server-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    job_.job_id = "test-job";
    job_.np = job_.max_np = 4;
    job_.min_np = 2;
    job_.hosts = {{"a", 2}, {"b", 2}};
    job_.orphan_limit = std::chrono::seconds(2);
  }
  ~ServerFixture() {
    agents_.clear();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string agent_address() const { return "unix:" + folder_.string() + "/rendezvous.sock"; }
  JobSpec& job() { return job_; }
  Journal& journal() { return *journal_; }
  RendezvousServer& server() { return *server_; }

  void StartServer() {
    StatusOr<std::unique_ptr<RendezvousServer>> started = RendezvousServer::Start(
        {.job = job_, .agent_address = agent_address(), .status_address = "127.0.0.1:0"}, *journal_,
        {.note =
             [this](Severity, const std::string& text) {
               MutexLock lock(mutex_);
               notes_.push_back(text);
             },
         .ended =
             [this](int exit_code, const std::string& reason) {
               MutexLock lock(mutex_);
               exit_code_ = exit_code;
               reason_ = reason;
               ended_.notify_all();
             }});
    INFO(started.status().ToString());
    REQUIRE(started.ok());
    server_ = std::move(*started);
  }
  void StopServer() { server_.reset(); }

  LittleAgent& AddAgent(const std::string& host, const std::string& job_id = "test-job") {
    agents_.push_back(std::make_unique<LittleAgent>(LittleAgent::Options{
        .server = agent_address(), .host = host, .slots = 2, .job_id = job_id}));
    return *agents_.back();
  }

  // Asks for the picture until it is so; the last one.
  JobView WaitView(const std::function<bool(const JobView&)>& condition) {
    const Instant limit = Now() + std::chrono::seconds(10);
    while (true) {
      const StatusOr<JobView> status =
          GetStatus(server_->status_address(), std::chrono::seconds(5));
      INFO(status.status().ToString());
      REQUIRE(status.ok());
      const JobView& view = *status;
      if (condition(view) || Now() > limit) {
        INFO("state " << static_cast<int>(view.state) << ", size " << view.size << ", "
                      << view.wait_text);
        CHECK(condition(view));
        return view;
      }
    }
  }
  std::optional<int> WaitEnd() {
    MutexLock lock(mutex_);
    const Instant limit = Now() + std::chrono::seconds(10);
    while (!exit_code_.has_value() && Now() < limit) {
      ended_.wait_for(mutex_, std::chrono::milliseconds(100));
    }
    return exit_code_;
  }
  std::string end_reason() {
    MutexLock lock(mutex_);
    return reason_;
  }

 private:
  std::filesystem::path folder_;
  JobSpec job_;
  std::unique_ptr<Journal> journal_ = MakeMemoryJournal();
  Mutex mutex_;
  ConditionVariable ended_;
  std::vector<std::string> notes_ GUARDED_BY(mutex_);
  std::optional<int> exit_code_ GUARDED_BY(mutex_);
  std::string reason_ GUARDED_BY(mutex_);
  std::unique_ptr<RendezvousServer> server_;
  std::vector<std::unique_ptr<LittleAgent>> agents_;
};

inline bool RunsWith(const JobView& view, int size) {
  return view.state == JobState::kRunning && view.size == size;
}

}  // namespace elastic::internal
