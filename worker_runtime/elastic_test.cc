#include "worker_runtime/elastic.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

// Through the public headers and libelastic.so only, as a user's program.

namespace elastic {
namespace {

void LeaveJob() {
  unsetenv("ELASTIC_AGENT_SOCKET");
  unsetenv("ELASTIC_JOB_ID");
}

struct Line {
  double slope;
  double velocity;
  uint64_t step;
  Cursor cursor;
};

TEST_CASE("A world of one runs a whole training from the initial state to the end") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  State<Line> state;
  REQUIRE(runtime.CreateState(state).ok());
  state.initial().slope = -1;
  // Least squares of y = 3 x over x = 1 .. 100, batches of 7.
  const Sampler sampler({.samples = 100, .batch = 7, .seed = 5});
  int calls = 0;
  const Status status = runtime.Run(state, [&](State<Line>& line) {
    ++calls;
    REQUIRE(runtime.rank() == 0);
    REQUIRE(runtime.size() == 1);
    REQUIRE(runtime.generation() == 1);
    while (line.current().cursor.epoch < 20) {
      const Line& now = line.current();
      double sums[2] = {0, 0};
      for (const uint64_t id : sampler.Share(now.cursor, runtime.rank(), runtime.size())) {
        const double x = static_cast<double>(id + 1) / 100;
        sums[0] += (now.slope * x - 3 * x) * x;
        sums[1] += 1;
      }
      ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(sums, 2));
      line.next() = {.slope = now.slope - sums[0] / sums[1],
                     .velocity = 0,
                     .step = now.step + 1,
                     .cursor = sampler.After(now.cursor)};
      ELASTIC_RETURN_IF_ERROR(runtime.Commit(line.next().step));
    }
    return Status();
  });
  REQUIRE(status.ok());
  REQUIRE(calls == 1);
  REQUIRE(state.current().step == 20 * 15);
  REQUIRE(elastic_committed_step() == 20 * 15);
  REQUIRE(std::abs(state.current().slope - 3) < 1e-3);
  REQUIRE(runtime.rank() == 0);
}

TEST_CASE("Calls before elastic_init name it") {
  REQUIRE(elastic_join(nullptr, nullptr) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("elastic_init"));
  REQUIRE(elastic_rank() == -1);
  REQUIRE(elastic_last_status() == ELASTIC_FAILED_PRECONDITION);
  REQUIRE(elastic_state_current() == nullptr);
}

TEST_CASE("A world of one has every collective, communicators and the stop") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(elastic_stop_requested() == 0);
  REQUIRE(runtime.Join().ok());
  const int32_t in[2] = {3, -4};
  int32_t out[2] = {0, 0};
  Communicator other;
  REQUIRE(runtime.CreateCommunicator(&other).ok());
  REQUIRE(other.ReduceScatter(in, out, 2, Op::kProduct).ok());
  REQUIRE(out[1] == -4);
  const size_t bytes_of[1] = {sizeof in};
  out[1] = 0;
  REQUIRE(runtime.AllGatherV(in, out, bytes_of).ok());
  REQUIRE(out[1] == -4);
  uint8_t pixels[1] = {7};
  REQUIRE(runtime.AllReduce(pixels, 1, Op::kMax).ok());
  REQUIRE(runtime.AllReduce(pixels, 0).ok());
  REQUIRE(runtime.AllReduce(pixels, 1, Op::kAverage).code() == Code::kInvalidArgument);
  REQUIRE(elastic_allgatherv(in, out, nullptr, nullptr) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(runtime.RequestStop().ok());
  REQUIRE_FALSE(runtime.StopRequested());
  REQUIRE(runtime.Commit(1).ok());
  REQUIRE(runtime.StopRequested());
}

TEST_CASE("Call options of a program built before there were communicators are taken") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(runtime.Join().ok());
  elastic_call_options options{};
  options.struct_size = offsetof(elastic_call_options, communicator);
  options.communicator = 12345;  // not theirs
  REQUIRE(elastic_barrier(&options) == ELASTIC_OK);
}

TEST_CASE("Before elastic_join rank, size and collectives fail and name the call to make") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(runtime.rank() == -1);
  REQUIRE(elastic_last_status() == ELASTIC_NOT_A_MEMBER);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("elastic_join"));
  REQUIRE(runtime.size() == -1);
  double value = 1;
  const Status status = runtime.AllReduce(&value, 1);
  REQUIRE(status.code() == Code::kNotAMember);
  REQUIRE_THAT(status.message(), Catch::Contains("elastic_join"));
  REQUIRE(runtime.Barrier().code() == Code::kNotAMember);
  REQUIRE(runtime.Commit(1).code() == Code::kNotAMember);
}

TEST_CASE("After elastic_join a world of one has every collective") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  elastic_membership membership{};
  membership.struct_size = sizeof membership;
  REQUIRE(elastic_join(&membership, nullptr) == ELASTIC_OK);
  REQUIRE(membership.size == 1);
  REQUIRE(membership.local_leader == 1);
  const int64_t in[2] = {4, 5};
  int64_t out[2] = {0, 0};
  REQUIRE(runtime.AllReduce(in, out, 2, Op::kAverage).ok());
  REQUIRE(out[1] == 5);
  REQUIRE(runtime.AllGather(in, out, sizeof in).ok());
  REQUIRE(runtime.Broadcast(out, sizeof out, 0).ok());
  REQUIRE(runtime.Broadcast(out, sizeof out, 1).code() == Code::kInvalidArgument);
  REQUIRE(runtime.Barrier().ok());
  REQUIRE(runtime.Finish().ok());
  REQUIRE(runtime.Join().code() == Code::kFinished);
}

TEST_CASE("Wrong arguments are refused before anything happens") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(elastic_init(nullptr) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE(elastic_state_create(0) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(elastic_state_create(64) == ELASTIC_OK);
  REQUIRE(elastic_state_create(64) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE(runtime.Join().ok());
  float value = 0;
  REQUIRE(elastic_allreduce(&value, &value, 1, static_cast<elastic_data_type>(9), ELASTIC_SUM,
                            nullptr) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(elastic_allreduce(&value, nullptr, 1, ELASTIC_FLOAT32, ELASTIC_SUM, nullptr) ==
          ELASTIC_INVALID_ARGUMENT);
  elastic_call_options options{};
  REQUIRE(elastic_barrier(&options) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("struct_size"));
  elastic_membership membership{};
  REQUIRE(elastic_get_membership(&membership) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(elastic_run(nullptr, nullptr) == ELASTIC_INVALID_ARGUMENT);
}

TEST_CASE("An error of the program's function comes out of Run with its own text") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  State<Line> state;
  REQUIRE(runtime.CreateState(state).ok());
  const Status status =
      runtime.Run(state, [](State<Line>&) { return Status(Code::kInternal, "the disk is full"); });
  REQUIRE(status.code() == Code::kInternal);
  REQUIRE(status.message() == "the disk is full");
}

TEST_CASE("A job's environment without a reachable agent fails rather than trains alone") {
  setenv("ELASTIC_JOB_ID", "job", 1);
  unsetenv("ELASTIC_AGENT_SOCKET");
  REQUIRE(elastic_init(nullptr) == ELASTIC_FAILED_PRECONDITION);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("ELASTIC_AGENT_SOCKET"));
  setenv("ELASTIC_AGENT_SOCKET", "/nowhere/agent.sock", 1);
  REQUIRE(elastic_init(nullptr) == ELASTIC_UNAVAILABLE);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("/nowhere/agent.sock"));
  LeaveJob();
}

TEST_CASE("A forked child is told that the library is not its") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  const pid_t child = fork();
  if (child == 0) {
    const bool refused =
        elastic_join(nullptr, nullptr) == ELASTIC_FAILED_PRECONDITION &&
        std::string(elastic_last_error()).find("forked from the worker") != std::string::npos &&
        elastic_state_current() == nullptr && elastic_event_fd() == -1 &&
        elastic_get_standing() == ELASTIC_STANDING_NONE &&
        elastic_last_status() == ELASTIC_FAILED_PRECONDITION &&
        elastic_init(nullptr) == ELASTIC_FAILED_PRECONDITION &&
        elastic_shutdown() == ELASTIC_FAILED_PRECONDITION;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(runtime.Join().ok());
}

TEST_CASE("A world of one has what a program with its own loop asks for") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.standing() == Standing::kNone);
  REQUIRE(runtime.Init().ok());
  REQUIRE(runtime.standing() == Standing::kStarting);
  Event event = Event::kReformed;
  const Status early = runtime.Poll(event);
  REQUIRE(early.code() == Code::kNotAMember);
  REQUIRE_THAT(early.message(), Catch::Contains("elastic_join"));
  REQUIRE(runtime.Put("key", "value").code() == Code::kNotAMember);
  REQUIRE(runtime.members().empty());
  REQUIRE(runtime.Join().ok());
  REQUIRE(runtime.standing() == Standing::kMember);
  REQUIRE(runtime.Poll(event).ok());
  REQUIRE(event == Event::kContinue);
  const auto readable = [&] {
    pollfd wait{runtime.event_fd(), POLLIN, 0};
    return poll(&wait, 1, 0) == 1;
  };
  REQUIRE_FALSE(readable());
  REQUIRE(runtime.members().size() == 1);
  REQUIRE(runtime.members()[0].incarnation == runtime.incarnation());
  REQUIRE(runtime.Put("key", "value").ok());
  REQUIRE(runtime.Put("key", "value").ok());
  REQUIRE(runtime.Put("key", "other").code() == Code::kInvalidArgument);
  std::string value;
  REQUIRE(runtime.Get("key", value).ok());
  REQUIRE(value == "value");
  REQUIRE(runtime.Get("nothing", value).code() == Code::kFailedPrecondition);
  REQUIRE(runtime.RequestStop().ok());
  REQUIRE(runtime.Commit(1).ok());
  REQUIRE(readable());
  REQUIRE(runtime.Poll(event).ok());
  REQUIRE(event == Event::kStopAt);
  REQUIRE(runtime.Finish().ok());
  REQUIRE(runtime.standing() == Standing::kFinished);
  REQUIRE(readable());
}

TEST_CASE("Keys, values and buffers of a wrong size are refused") {
  LeaveJob();
  Runtime runtime;
  REQUIRE(runtime.Init().ok());
  REQUIRE(runtime.Join().ok());
  REQUIRE(runtime.Put("", "x").code() == Code::kInvalidArgument);
  REQUIRE(runtime.Put(std::string(255, 'k'), std::string(65536, 'v')).ok());
  REQUIRE(runtime.Put(std::string(256, 'k'), "x").code() == Code::kInvalidArgument);
  REQUIRE(runtime.Put("k", std::string(65537, 'v')).code() == Code::kInvalidArgument);
  REQUIRE(runtime.Put("four", "1234").ok());
  char buffer[3];
  size_t bytes = sizeof buffer;
  REQUIRE(elastic_get("four", buffer, &bytes, nullptr) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE(bytes == 4);
  elastic_member member{};
  size_t count = 0;
  REQUIRE(elastic_get_members(&member, 1, &count) == ELASTIC_INVALID_ARGUMENT);
  REQUIRE_THAT(elastic_last_error(), Catch::Contains("struct_size"));
}

}  // namespace
}  // namespace elastic
