#include "launcher/cli/job_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

using namespace std::chrono_literals;

// The files of one test: a script in the place of elastic-agent, and what it leaves.
class Folder {
 public:
  explicit Folder(const std::string& script) {
    char pattern[] = "/tmp/elastic_loop_test.XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path_ = pattern;
    std::ofstream(agent()) << "#!/bin/sh\ncd " << path_ << "\nread -r line\n" << script << "\n";
    REQUIRE(chmod(agent().c_str(), 0755) == 0);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string agent() const { return path_ + "/elastic-agent"; }
  bool Has(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

 private:
  std::string path_;
};

AgentBootstrap Bootstrap() {
  AgentBootstrap bootstrap;
  bootstrap.job_id = "job";
  bootstrap.host = "a";
  bootstrap.server = "unix:/nowhere";
  bootstrap.folder = "/nowhere";
  bootstrap.command = {"./train"};
  return bootstrap;
}

// A loop around one scripted agent. `react` plays the server: it sees each event that is posted.
struct Job {
  using React = std::function<void(Job&, const Event&)>;

  Job(
      const std::string& script, Duration grace_period, React react = [](Job&, const Event&) {})
      : folder(script),
        loop({.agent_program = folder.agent(),
              .agents = {Bootstrap()},
              .grace_period = grace_period,
              .stop_margin = 300ms,
              .post =
                  [this, react = std::move(react)](Event event) {
                    events.push_back(event);
                    react(*this, event);
                  }},
             signals, end, console) {}

  std::vector<StopRequested> Stops() const {
    std::vector<StopRequested> stops;
    for (const Event& event : events) {
      if (const auto* stop = std::get_if<StopRequested>(&event)) {
        stops.push_back(*stop);
      }
    }
    return stops;
  }

  Folder folder;
  JobSignals signals;
  Console console{Severity::kError};
  JobEnd end;
  std::vector<Event> events;
  JobLoop loop;
};

void SendToSelf(int number) { REQUIRE(kill(getpid(), number) == 0); }

constexpr const char* kOrderlyAgent = "cat > /dev/null; touch ended_in_order";

// The script's own way to say that it runs: the loop reports the stop to the server.
constexpr const char* kTellParent = "kill -TERM $PPID; ";

TEST_CASE("TheLoopEndsWithTheJobAndTheAgentHasTimeToEndInOrder") {
  Job job(std::string(kTellParent) + kOrderlyAgent, 1s, [](Job& self, const Event&) {
    self.end.Set(3, "too few workers");
    self.end.Set(0, "a later call changes nothing");
  });
  const JobEnd::Result result = job.loop.Run();
  CHECK(result.exit_code == 3);
  CHECK(result.reason == "too few workers");
  CHECK(job.folder.Has("ended_in_order"));
}

TEST_CASE("OneSignalStopsWithGraceAndGivesItsExitCode") {
  signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
  const auto [number, exit_code] =
      GENERATE(table<int, int>({{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 143}}));
  Job job(kOrderlyAgent, 30s, [](Job& self, const Event& event) {
    const auto& stop = std::get<StopRequested>(event);
    self.end.Set(stop.exit_code, "stopped: " + stop.reason);
  });
  SendToSelf(number);
  CHECK(job.loop.Run().exit_code == exit_code);
  REQUIRE(job.Stops().size() == 1);
  CHECK(job.Stops()[0].mode == StopMode::kGraceful);
  CHECK(job.folder.Has("ended_in_order"));
}

TEST_CASE("ASecondSignalStopsAtOnceAndTheFirstOnesExitCodeStays") {
  Job job(kOrderlyAgent, 30s, [](Job& self, const Event& event) {
    const auto& stop = std::get<StopRequested>(event);
    if (stop.mode == StopMode::kGraceful) {
      SendToSelf(SIGTERM);
    } else {
      self.end.Set(stop.exit_code, "stopped");
    }
  });
  SendToSelf(SIGINT);
  CHECK(job.loop.Run().exit_code == 130);
  REQUIRE(job.Stops().size() == 2);
  CHECK(job.Stops()[1].mode == StopMode::kImmediate);
}

TEST_CASE("AThirdSignalKillsTheAgentsOfAServerThatDoesNotAnswer") {
  Job job("exec sleep 1000", 30s, [](Job& self, const Event&) {
    if (self.Stops().size() <= 2) {
      SendToSelf(SIGINT);
    }
  });
  SendToSelf(SIGINT);
  const Instant begin = Now();
  CHECK(job.loop.Run().exit_code == 130);
  CHECK(Now() - begin < 10s);
  CHECK(job.Stops().size() == 2);
}

TEST_CASE("AStopThatIsNotCarriedOutGetsHarderByItself") {
  Job job(kOrderlyAgent, 100ms);
  SendToSelf(SIGTERM);
  CHECK(job.loop.Run().exit_code == 143);
  REQUIRE(job.Stops().size() == 2);
  CHECK(job.Stops()[1].mode == StopMode::kImmediate);
}

TEST_CASE("AStoppedTerminalDoesNotStopTheLauncher") {
  Job job(kOrderlyAgent, 1s, [](Job& self, const Event& event) {
    self.end.Set(std::get<StopRequested>(event).exit_code, "stopped");
  });
  SendToSelf(SIGTSTP);
  SendToSelf(SIGTERM);
  CHECK(job.loop.Run().exit_code == 143);
  CHECK(job.Stops().size() == 1);
}

TEST_CASE("AnAgentThatDiesIsToldToTheServerAndStartedAgain") {
  Job job("if test -e once; then cat > /dev/null; touch second; else touch once; exit 9; fi", 1s,
          [](Job& self, const Event& event) {
            const auto& failed = std::get<AgentStartFailed>(event);
            CHECK(failed.host == "a");
            CHECK_THAT(failed.message, Catch::Contains("exit code 9"));
            self.end.Set(0, "seen");
          });
  CHECK(job.loop.Run().exit_code == 0);
  CHECK(job.events.size() == 1);
}

TEST_CASE("AnAgentThatDoesNotEndIsKilled") {
  Job job(std::string(kTellParent) + "exec sleep 1000", 1s,
          [](Job& self, const Event&) { self.end.Set(0, ""); });
  const Instant begin = Now();
  CHECK(job.loop.Run().exit_code == 0);
  CHECK(Now() - begin < 10s);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child is left, not even as a zombie
}

// Stands for an agent in an uninterruptible wait: a process that somebody traces stays, once
// killed, a zombie that its parent cannot reap before the tracer does. The tracer is this process,
// and the launcher a child of it, since tracing a grandchild needs no privilege.
TEST_CASE("AnAgentThatCannotBeKilledDoesNotHoldUpTheLauncher") {
  Folder place("echo $$ > pid.new; mv pid.new pid; exec sleep 1000");
  int told[2];
  REQUIRE(pipe2(told, O_CLOEXEC) == 0);
  const UniqueFd errors(told[0]);
  const pid_t launcher = fork();
  REQUIRE(launcher >= 0);
  if (launcher == 0) {
    dup2(told[1], STDERR_FILENO);
    JobSignals signals;
    Console console(Severity::kError);
    JobEnd end;
    int exit_code = 0;
    {
      JobLoop loop({.agent_program = place.agent(),
                    .agents = {Bootstrap()},
                    .grace_period = 30s,
                    .kill_limit = 300ms,
                    .post = [&](const Event&) { end.Set(7, "stopped"); }},
                   signals, end, console);
      exit_code = loop.Run().exit_code;
    }
    console.Finish(signals, exit_code);
    _exit(exit_code);
  }
  close(told[1]);
  const Instant limit = Now() + 20s;
  while (!place.Has("pid") && Now() < limit) {
    poll(nullptr, 0, 5);
  }
  pid_t agent = 0;
  std::ifstream(place.path() + "/pid") >> agent;
  REQUIRE(agent > 0);
  REQUIRE(ptrace(PTRACE_SEIZE, agent, nullptr, nullptr) == 0);

  const Instant begin = Now();
  REQUIRE(kill(launcher, SIGTERM) == 0);
  int status = 0;
  REQUIRE(waitpid(launcher, &status, 0) == launcher);
  CHECK(Now() - begin < 10s);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  char text[4096];
  const ssize_t bytes = read(errors.get(), text, sizeof text);
  REQUIRE(bytes > 0);
  CHECK_THAT(
      std::string(text, static_cast<size_t>(bytes)),
      Catch::Contains(StrCat("agent of host a, pid ", agent)) && Catch::Contains("left behind"));
  CHECK(waitpid(agent, nullptr, 0) == agent);
}

}  // namespace
}  // namespace elastic::internal
