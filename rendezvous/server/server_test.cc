#include <algorithm>

#include "rendezvous/server/server_fixture.h"

namespace elastic::internal {

TEST_CASE_METHOD(ServerFixture, "A job forms once all its agents have reported their workers") {
  StartServer();
  LittleAgent& a = AddAgent("a");
  const JobView waiting = WaitView([](const JobView& view) { return view.hosts[0].registered; });
  CHECK(waiting.state == JobState::kStarting);
  CHECK(waiting.wait.reason == WaitReason::kAgents);

  LittleAgent& b = AddAgent("b");
  const JobView view = WaitView([](const JobView& v) { return RunsWith(v, 4); });
  REQUIRE(view.workers.size() == 4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    const WorkerView& worker = view.workers[static_cast<size_t>(rank)];
    CHECK(worker.rank == rank);
    CHECK(worker.host == (rank < 2 ? "a" : "b"));
    CHECK(worker.report.slot == rank % 2);
  }
  for (LittleAgent* agent : {&a, &b}) {
    CHECK(agent->WaitFor([&](const LittleAgent::View& v) {
      return v.report.installed == view.generation && v.directive.installed.has_value() &&
             v.directive.installed->size() == 4;
    }));
  }
}

TEST_CASE_METHOD(ServerFixture, "Steady heartbeats are acknowledged and keep their rosters") {
  StartServer();
  AddAgent("a");
  LittleAgent& b = AddAgent("b");
  const JobView view = WaitView([](const JobView& v) { return RunsWith(v, 4); });
  const LittleAgent::View before = b.Look();
  REQUIRE(b.WaitFor([&](const LittleAgent::View& v) {
    return v.directive.acked_report > before.report.sequence + 5;
  }));
  const LittleAgent::View after = b.Look();
  REQUIRE(after.directive.installed.has_value());
  CHECK(after.directive.installed->id == view.generation);
  CHECK(after.losses == 0);
}

TEST_CASE_METHOD(ServerFixture, "A lost worker is replaced and the status tells why") {
  StartServer();
  AddAgent("a");
  LittleAgent& b = AddAgent("b");
  const JobView before = WaitView([](const JobView& v) { return RunsWith(v, 4); });
  b.KillWorker(1);
  WaitView([&](const JobView& v) { return v.generation.number > before.generation.number; });
  WaitView([&](const JobView& v) {
    return RunsWith(v, 4) && v.generation.number > before.generation.number;
  });

  const StatusOr<JobView> status = GetStatus(server().status_address(), std::chrono::seconds(5));
  REQUIRE(status.ok());
  CHECK(status->size == 4);
  REQUIRE(!status->resets.empty());
  const ResetView& loss = status->resets.front();
  CHECK(loss.size_before == 4);
  CHECK(loss.size_after == 3);
  CHECK_THAT(loss.cause, Catch::Contains("SIGKILL") && Catch::Contains("b:1"));
  CHECK(loss.resumed.version == StateVersion{before.generation.number, 1});
}

TEST_CASE_METHOD(ServerFixture, "An agent comes back by itself when its server does") {
  StartServer();
  LittleAgent& a = AddAgent("a");
  LittleAgent& b = AddAgent("b");
  const JobView before = WaitView([](const JobView& v) { return RunsWith(v, 4); });
  const AgentIncarnation incarnation = a.Look().agent;
  StopServer();
  for (LittleAgent* agent : {&a, &b}) {
    REQUIRE(agent->WaitFor([](const LittleAgent::View& v) { return v.losses >= 2; }));
  }

  StartServer();
  REQUIRE(a.WaitFor([](const LittleAgent::View& v) { return v.registrations == 2; }));
  CHECK(a.Look().agent == incarnation);
  const JobView after = WaitView([](const JobView& v) { return RunsWith(v, 4); });
  CHECK(after.generation == before.generation);
  REQUIRE(a.WaitFor([](const LittleAgent::View& v) { return v.directive.server.value == 2; }));
}

TEST_CASE_METHOD(ServerFixture, "A newer agent of a host ends the older one") {
  StartServer();
  LittleAgent& older = AddAgent("a");
  REQUIRE(older.WaitFor([](const LittleAgent::View& v) { return v.registrations == 1; }));
  LittleAgent& newer = AddAgent("a");
  REQUIRE(older.WaitFor([](const LittleAgent::View& v) { return !v.refused.ok(); }));
  CHECK(older.Look().refused.code() == StatusCode::kAborted);
  REQUIRE(newer.WaitFor([](const LittleAgent::View& v) { return v.registrations == 1; }));
  CHECK(newer.Look().agent > older.Look().agent);
  CHECK(newer.Look().refused.ok());
}

TEST_CASE_METHOD(ServerFixture,
                 "An agent of another job or of an unknown host is refused for good") {
  StartServer();
  LittleAgent& stranger = AddAgent("a", "another-job");
  REQUIRE(stranger.WaitFor([](const LittleAgent::View& v) { return !v.refused.ok(); }));
  CHECK(stranger.Look().refused.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(stranger.Look().refused.message(),
             Catch::Contains("another-job") && Catch::Contains("test-job"));

  LittleAgent& lost = AddAgent("elsewhere");
  REQUIRE(lost.WaitFor([](const LittleAgent::View& v) { return !v.refused.ok(); }));
  CHECK(lost.Look().refused.code() == StatusCode::kNotFound);
  CHECK(lost.Look().losses == 0);
}

TEST_CASE_METHOD(ServerFixture, "The job ends with 0 when all workers have finished") {
  StartServer();
  LittleAgent& a = AddAgent("a");
  LittleAgent& b = AddAgent("b");
  WaitView([](const JobView& v) { return RunsWith(v, 4); });
  a.FinishWorkers();
  WaitView([](const JobView& v) { return v.state == JobState::kFinishing; });
  b.FinishWorkers();
  CHECK(WaitEnd() == 0);
  WaitView([](const JobView& v) { return v.state == JobState::kFinished; });
  CHECK(a.WaitFor([](const LittleAgent::View& v) { return v.directive.finished.has_value(); }));
}

TEST_CASE_METHOD(ServerFixture, "A stop ends the job with the exit code that it asks for") {
  StartServer();
  AddAgent("a");
  AddAgent("b");
  WaitView([](const JobView& v) { return RunsWith(v, 4); });
  server().Post(StopRequested{.reason = "Ctrl-C", .exit_code = 130});
  CHECK(WaitEnd() == 130);
}

TEST_CASE_METHOD(ServerFixture, "A server whose journal belongs to a newer one stops at once") {
  StartServer();
  LittleAgent& a = AddAgent("a");
  REQUIRE(a.WaitFor([](const LittleAgent::View& v) { return v.registrations == 1; }));
  REQUIRE(journal().BeginIncarnation().ok());
  AddAgent("b");  // its registration must be written first
  CHECK(WaitEnd() == static_cast<int>(JobExit::kStateLost));
  CHECK_THAT(end_reason(), Catch::Contains("incarnation 2 has begun"));
  CHECK(a.WaitFor([](const LittleAgent::View& v) { return v.losses >= 1; }));
}

TEST_CASE_METHOD(ServerFixture, "Shutdown ends open streams within a second") {
  StartServer();
  LittleAgent& a = AddAgent("a");
  REQUIRE(a.WaitFor([](const LittleAgent::View& v) { return v.registrations == 1; }));
  const Instant start = Now();
  server().Shutdown();
  CHECK(Now() - start < std::chrono::seconds(1));
  CHECK(a.WaitFor([](const LittleAgent::View& v) { return v.losses >= 1; }));
}

TEST_CASE_METHOD(ServerFixture, "An address that cannot be listened on is named") {
  StartServer();
  const auto start = [&](const std::string& agents, const std::string& status) {
    return RendezvousServer::Start(
               {.job = job(), .agent_address = agents, .status_address = status}, journal(), {})
        .status();
  };
  const std::string taken = server().status_address();
  const Status in_use = start("127.0.0.1:0", taken);
  CHECK(in_use.code() == StatusCode::kUnavailable);
  CHECK_THAT(in_use.message(), Catch::Contains(taken));
  CHECK(start("unix:/" + std::string(200, 'x'), "127.0.0.1:0").code() ==
        StatusCode::kInvalidArgument);
  CHECK(start("nonsense", "127.0.0.1:0").code() == StatusCode::kInvalidArgument);
  CHECK(start("127.0.0.1:0", "192.0.2.1:0").code() == StatusCode::kUnavailable);
}

TEST_CASE("A status address where nobody listens is named in the error") {
  const StatusOr<JobView> status = GetStatus("127.0.0.1:1", std::chrono::seconds(5));
  REQUIRE(!status.ok());
  CHECK(status.status().code() == StatusCode::kUnavailable);
  CHECK_THAT(status.status().message(), Catch::Contains("127.0.0.1:1"));
}

}  // namespace elastic::internal
