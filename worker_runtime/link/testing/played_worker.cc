#include "worker_runtime/link/testing/played_worker.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

namespace elastic::internal::testing {

TestFolder::TestFolder() {
  char name[] = "/tmp/elastic-link-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

PlayedWorker::PlayedWorker(const TestFolder& folder, uint32_t counter, size_t state_bytes)
    : agent_(folder.path(), {AgentIncarnation{1}, counter}, static_cast<int32_t>(counter) - 1) {
  auto opened = std::async(std::launch::async, [this] {
    return AgentSession::Open({.socket_path = agent_.path(), .job_id = "job"});
  });
  agent_.Welcome();
  StatusOr<std::unique_ptr<Session>> session = opened.get();
  REQUIRE(session.ok());
  session_ = std::move(*session);
  if (state_bytes > 0) {
    REQUIRE(session_->CreateState(state_bytes).ok());
  }
}

PlayedWorker::~PlayedWorker() = default;

std::future<Status> PlayedWorker::Join() {
  return std::async(std::launch::async, [this] { return session_->Join(std::nullopt); });
}

std::future<Status> PlayedWorker::Commit(uint64_t step) {
  return std::async(std::launch::async,
                    [this, step] { return session_->Commit(step, std::nullopt); });
}

std::future<Status> PlayedWorker::Finish() {
  return std::async(std::launch::async, [this] { return session_->Finish(std::nullopt); });
}

std::future<Status> PlayedWorker::Sum(int64_t* value) {
  return std::async(std::launch::async, [this, value] {
    return session_->AllReduce(value, value, 1, DataType::kInt64, ReduceOp::kSum, {});
  });
}

std::future<Status> PlayedWorker::JoinUntilReady() {
  std::future<Status> joined = Join();
  entry_ = agent_.AwaitReady();
  return joined;
}

Status Result(std::future<Status>& call) {
  const auto patience = std::chrono::milliseconds(ScriptedAgent::kPatienceMs);
  REQUIRE(call.wait_for(patience) == std::future_status::ready);
  return call.get();
}

bool Pending(std::future<Status>& call) {
  return call.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready;
}

}  // namespace elastic::internal::testing
