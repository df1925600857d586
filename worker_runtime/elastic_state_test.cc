#include "worker_runtime/elastic_state.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <vector>

// State in the program's own memory, through the public headers and libelastic.so only.

namespace elastic {
namespace {

void LeaveJob() {
  unsetenv("ELASTIC_AGENT_SOCKET");
  unsetenv("ELASTIC_JOB_ID");
}

TEST_CASE("A function that answers ABORTED is called again with the committed items") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  std::vector<float> weights(1000, 1);
  uint64_t step = 0;
  Items items;
  REQUIRE(items.Register("weights", weights).ok());
  REQUIRE(items.Register("step", step).ok());
  int calls = 0;
  const Status status = runtime.Run(items, [&](Items&) {
    ++calls;
    REQUIRE(step == (calls == 1 ? 0 : 3));
    REQUIRE(weights == std::vector<float>(1000, static_cast<float>(1 + step)));
    while (step < 5) {
      ++step;
      for (float& weight : weights) {
        weight += 1;
      }
      if (step == 4 && calls == 1) {
        return Status(Code::kAborted, "as if a worker had been lost");
      }
      ELASTIC_RETURN_IF_ERROR(runtime.Commit(step));
    }
    return Status();
  });
  REQUIRE(status.ok());
  REQUIRE(calls == 2);
  REQUIRE(step == 5);
  REQUIRE(weights[999] == 6);
  REQUIRE(elastic_committed_step() == 5);
}

TEST_CASE("A vector that has grown since the commit has its old size again after a restore") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  std::vector<int> values{1, 2};
  Items items;
  REQUIRE(items.Register("values", values).ok());
  REQUIRE(runtime.Join().ok());
  values.assign(50, 7);
  REQUIRE(items.Resize("values", values).ok());
  REQUIRE(runtime.Join().ok());
  REQUIRE(values == std::vector<int>{1, 2});
  values.assign(50, 7);
  REQUIRE(items.Resize("values", values).ok());
  REQUIRE(runtime.Commit(1).ok());
  values.assign(3, 0);
  REQUIRE(items.Unregister("values").ok());
  REQUIRE(runtime.Join().ok());
  REQUIRE(values == std::vector<int>(50, 7));
  void* memory = nullptr;
  size_t bytes = 0;
  REQUIRE(elastic_registered("values", &memory, &bytes) == ELASTIC_OK);
  REQUIRE(memory == values.data());
  REQUIRE(bytes == sizeof(int) * 50);
}

TEST_CASE("A process keeps its state in one of the two ways") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  int value = 1;
  SECTION("items first") {
    REQUIRE(elastic_register("value", &value, sizeof value, nullptr) == ELASTIC_OK);
    REQUIRE(elastic_state_create(64) == ELASTIC_FAILED_PRECONDITION);
    REQUIRE_THAT(elastic_last_error(), Catch::Contains("use one of the two"));
    REQUIRE(elastic_state_current() == nullptr);
    REQUIRE(elastic_state_next() == nullptr);
  }
  SECTION("buffers first") {
    REQUIRE(elastic_state_create(64) == ELASTIC_OK);
    REQUIRE(elastic_register("value", &value, sizeof value, nullptr) ==
            ELASTIC_FAILED_PRECONDITION);
    REQUIRE_THAT(elastic_last_error(), Catch::Contains("use one of the two"));
  }
}

TEST_CASE("Items are registered after elastic_init, the first one before the job is joined") {
  LeaveJob();
  int value = 1;
  REQUIRE(elastic_register("value", &value, sizeof value, nullptr) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("elastic_init"));
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(elastic_register(nullptr, &value, sizeof value, nullptr) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(elastic_resize("value", &value, 2) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("elastic_register"));
  elastic_register_options options{};
  REQUIRE(elastic_register("value", &value, sizeof value, &options) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("struct_size"));
  REQUIRE(runtime.Join().ok());
  REQUIRE(elastic_register("value", &value, sizeof value, nullptr) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("\"value\" is the first item"));
}

}  // namespace
}  // namespace elastic
