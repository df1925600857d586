#include "launcher/start/agent_supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rendezvous/base/real_clock.h"

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

// A shell script in the place of elastic-agent, in a folder of its own.
class FakeAgent {
 public:
  explicit FakeAgent(const std::string& script) {
    char pattern[] = "/tmp/elastic_supervisor_test.XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    folder_ = pattern;
    std::ofstream(program()) << "#!/bin/sh\ncd " << folder_ << "\n" << script << "\n";
    REQUIRE(chmod(program().c_str(), 0755) == 0);
    const std::string output = folder_ + "/output";
    output_.Reset(open(output.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    REQUIRE(output_.valid());
  }
  ~FakeAgent() { std::filesystem::remove_all(folder_); }

  std::string program() const { return folder_ + "/elastic-agent"; }
  int output() const { return output_.get(); }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }
  std::string Content(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(folder_ + "/" + name).rdbuf();
    return content.str();
  }

 private:
  std::string folder_;
  UniqueFd output_;
};

AgentBootstrap Bootstrap(const std::string& host) {
  AgentBootstrap bootstrap;
  bootstrap.job_id = "job";
  bootstrap.host = host;
  bootstrap.server = "unix:/nowhere";
  bootstrap.folder = "/nowhere";
  bootstrap.command = {"./train"};
  return bootstrap;
}

struct Fixture {
  explicit Fixture(const std::string& script, std::vector<AgentBootstrap> agents = {Bootstrap("a")})
      : fake(script),
        relay({.output_fd = fake.output(), .errors_fd = fake.output(), .name = "test"}),
        supervisor({.program = fake.program(), .agents = std::move(agents)},
                   {.trouble =
                        [this](const std::string& host, const std::string& message) {
                          troubled_hosts.push_back(host);
                          troubles.push_back(message);
                        }},
                   relay) {}

  // Turns the loop until `done` holds; false after ten seconds.
  template <class Done>
  bool Await(Done done) {
    const Instant limit = Now() + 10s;
    while (!done() && Now() < limit) {
      std::vector<pollfd> polled;
      supervisor.AddPollEntries(polled);
      poll(polled.data(), polled.size(), 20);
      supervisor.HandleEvents(Now());
    }
    return done();
  }
  std::string OutputAtEnd() {
    relay.Close(10s);
    pollfd polled{relay.finished_fd(), POLLIN, 0};
    REQUIRE(poll(&polled, 1, 20'000) == 1);
    return fake.Content("output");
  }

  FakeAgent fake;
  std::vector<std::string> troubled_hosts;
  std::vector<std::string> troubles;
  OutputRelay relay;
  AgentSupervisor supervisor;
};

TEST_CASE("AnAgentGetsItsBootstrapAsOneLineAndEndsWhenItsInputCloses") {
  Fixture job("read -r line; echo \"$line\" > line; cat > rest; echo ended");
  job.supervisor.StartDue(Now());
  CHECK(job.supervisor.running() == 1);
  REQUIRE(job.Await([&] { return !job.fake.Content("line").empty(); }));
  const auto read = AgentBootstrap::FromJson(job.fake.Content("line"));
  REQUIRE(read.ok());
  CHECK(*read == Bootstrap("a"));
  CHECK(job.supervisor.running() == 1);

  job.supervisor.StopRestarting();
  job.supervisor.CloseInputs();
  REQUIRE(job.Await([&] { return job.supervisor.running() == 0; }));
  CHECK(job.fake.Content("rest").empty());
  CHECK(job.troubles.empty());
  CHECK_THAT(job.OutputAtEnd(), Catch::Contains("ended\n"));
}

TEST_CASE("ABootstrapLargerThanAPipeArrivesWholeWithoutBlockingTheLoop") {
  AgentBootstrap large = Bootstrap("a");
  large.command.push_back(std::string(1 << 20, 'x'));
  Fixture job("read -r line; echo ${#line} > length; cat > /dev/null", {large});
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return !job.fake.Content("length").empty(); }));
  CHECK(std::stoul(job.fake.Content("length")) == large.ToJson().size());
}

TEST_CASE("AnAgentThatDiesIsStartedAtOnceAndThenWithADelay") {
  Fixture job("exit 7");
  const auto born = Now();
  job.supervisor.StartDue(born);
  REQUIRE(job.Await([&] { return job.troubles.size() == 1; }));
  CHECK(job.troubled_hosts[0] == "a");
  CHECK_THAT(job.troubles[0],
             Catch::Contains("exit code 7") && Catch::Contains("started again at once"));
  REQUIRE(job.supervisor.NextDeadline().has_value());
  CHECK(*job.supervisor.NextDeadline() <= Now());
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return job.troubles.size() == 2; }));
  CHECK_THAT(job.troubles[1], Catch::Contains("started again in 1s"));
  CHECK(*job.supervisor.NextDeadline() > Now());
}

TEST_CASE("TheInputOfADeadAgentStaysOpenForItsGuardianUntilTheLauncherIsDone") {
  // The child stands for the guardian: it holds the agent's input and sees when that is closed.
  // A shell gives its background jobs another standard input, hence the copy.
  Fixture job(
      "exec 3<&0; if test -e once; then cat > /dev/null; exit; fi; touch once; read -r line;"
      "(cat <&3 > /dev/null; touch launcher_gone) & exit 1");
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return job.troubles.size() == 1; }));
  job.supervisor.StartDue(Now());
  const Instant limit = Now() + 200ms;
  job.Await([&] { return Now() > limit; });
  CHECK_FALSE(job.fake.Exists("launcher_gone"));
  job.supervisor.StopRestarting();
  job.supervisor.CloseInputs();
  CHECK(job.Await([&] { return job.fake.Exists("launcher_gone"); }));
}

TEST_CASE("WhatADeadAgentLeavesBehindIsReaped") {
  Fixture job("read -r line; sleep 0.2 & exit 1");
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return job.troubles.size() == 1; }));
  CHECK(job.supervisor.HasOrphans());
  job.supervisor.StopRestarting();
  CHECK(job.Await([&] { return !job.supervisor.HasOrphans(); }));
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("WhatNoGuardianIsLeftToKillIsKilled") {
  Fixture job(
      "read -r line; ELASTIC_JOB_ID=job setsid sh -c 'sleep 600 & echo $! > stray; wait' &\n"
      "while [ ! -s stray ]; do :; done; kill -9 $$");
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return job.troubles.size() == 1; }));
  const pid_t stray = static_cast<pid_t>(std::stol(job.fake.Content("stray")));
  job.supervisor.StopRestarting();
  CHECK(job.Await([&] { return !job.supervisor.HasOrphans(); }));
  CHECK(kill(stray, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("AnAgentThatCannotBeStartedIsTroubleToo") {
  Fixture job("exit 0");
  std::filesystem::remove(job.fake.program());
  job.supervisor.StartDue(Now());
  REQUIRE(job.troubles.size() == 1);
  CHECK_THAT(job.troubles[0], Catch::Contains("could not be started"));
  CHECK(job.supervisor.running() == 0);
}

TEST_CASE("AnAgentThatEndsInOrderIsNoTroubleAndStartsAgainOnlyIfTheJobGoesOn") {
  Fixture job("echo life >> lives; exit 0");
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return job.supervisor.running() == 0; }));
  CHECK(job.troubles.empty());
  REQUIRE(job.supervisor.NextDeadline().has_value());
  CHECK(*job.supervisor.NextDeadline() > Now());

  job.supervisor.StartDue(*job.supervisor.NextDeadline());
  REQUIRE(job.Await([&] { return job.supervisor.running() == 0; }));
  CHECK(job.fake.Content("lives") == "life\nlife\n");
  job.supervisor.StopRestarting();
  CHECK_FALSE(job.supervisor.NextDeadline().has_value());
}

TEST_CASE("AfterStopRestartingADeadAgentStaysDead") {
  Fixture job("read -r line; cat > /dev/null");
  job.supervisor.StartDue(Now());
  job.supervisor.StopRestarting();
  job.supervisor.Kill();
  REQUIRE(job.Await([&] { return job.supervisor.running() == 0; }));
  CHECK_FALSE(job.supervisor.NextDeadline().has_value());
  CHECK(job.troubles.empty());
}

TEST_CASE("AnAgentHasAProcessGroupOfItsOwnAndNoDescriptorOfTheLauncher") {
  const UniqueFd leaked(open("/etc/passwd", O_RDONLY));  // inheritable
  REQUIRE(leaked.valid());
  Fixture job(
      "read -r line; ls -l /proc/$$/fd > fds; cut -d' ' -f1,5 /proc/$$/stat > ids;"
      "echo > done; cat > /dev/null");
  job.supervisor.StartDue(Now());
  REQUIRE(job.Await([&] { return !job.fake.Content("done").empty(); }));
  std::istringstream ids(job.fake.Content("ids"));
  int pid = 0, group = -1;
  ids >> pid >> group;
  CHECK(pid == group);
  CHECK_THAT(job.fake.Content("fds"), Catch::Contains("pipe:") && !Catch::Contains("/etc/passwd"));
}

}  // namespace
}  // namespace elastic::internal
