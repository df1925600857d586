#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <thread>

#include "launcher/agent/agent_limits.h"
#include "launcher/agent/agent_test_support.h"
#include "launcher/agent/guardian_client.h"

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<GuardianClient> ForkGuardian(const std::string& folder) {
  BlockChildSignal();
  auto client = GuardianClient::Fork("job", TracesIn(folder));
  REQUIRE(client.ok());
  return std::move(*client);
}

constexpr WorkerIncarnation kFirst{AgentIncarnation{7}, 1};

SpawnRequest Shell(const std::string& script, WorkerIncarnation incarnation = kFirst) {
  SpawnRequest request;
  request.incarnation = incarnation;
  request.command = {"/bin/sh", "-c", script};
  request.environment = {
      "PATH=/usr/bin:/bin",
      StrCat("ELASTIC_WORKER=job/", incarnation.agent.value, ".", incarnation.counter)};
  return request;
}

GuardianNews NextNews(GuardianClient& guardian) {
  const Instant limit = Now() + kPatience;
  while (Now() < limit) {
    pollfd readable{guardian.socket(), POLLIN, 0};
    poll(&readable, 1, 100);
    auto news = guardian.Receive();
    REQUIRE(news.ok());
    if (news->has_value()) {
      return std::move(**news);
    }
  }
  FAIL("no news from the guardian");
  return {};
}

// A shell script that starts a grandchild in a session of its own, orphaned by a double fork, and
// prints its pid; and a direct child, whose pid it prints too.
const char kFamily[] =
    "(setsid sh -c 'echo $$; exec sleep 1000' >&1 & ) ; sleep 1000 & echo $!; wait";

struct Family {
  pid_t worker = 0;
  std::set<pid_t> all;
  std::vector<WorkerDescriptors> descriptors;
};
Family SpawnFamily(GuardianClient& guardian, WorkerIncarnation incarnation = kFirst) {
  REQUIRE(guardian.Spawn(Shell(kFamily, incarnation)).ok());
  GuardianNews news = NextNews(guardian);
  REQUIRE(news.kind == GuardianEventKind::kSpawned);
  Family family;
  family.worker = static_cast<pid_t>(news.pid);
  family.all = {family.worker};
  for (int i = 0; i < 2; ++i) {
    family.all.insert(std::stoi(ReadLine(news.descriptors.output.get())));
  }
  family.descriptors.push_back(std::move(news.descriptors));
  REQUIRE(family.all.size() == 3);
  for (pid_t pid : family.all) {
    REQUIRE(Lives(pid));
  }
  return family;
}

bool NoneLives(const Family& family) {
  for (pid_t pid : family.all) {
    if (Lives(pid)) {
      return false;
    }
  }
  return true;
}

// 0-2, socket, bootstrap input, the agent's pidfd, the child signal.
constexpr size_t kGuardiansOwnDescriptors = 7;

TEST_CASE("GuardianReportsTheExitCodeOfAWorker") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  REQUIRE(guardian->Spawn(Shell("echo out; echo err >&2; exit 3")).ok());
  const GuardianNews spawned = NextNews(*guardian);
  REQUIRE(spawned.kind == GuardianEventKind::kSpawned);
  CHECK(spawned.incarnation == kFirst);
  CHECK(ReadLine(spawned.descriptors.output.get()) == "out");
  CHECK(ReadLine(spawned.descriptors.errors.get()) == "err");
  const GuardianNews exited = NextNews(*guardian);
  REQUIRE(exited.kind == GuardianEventKind::kExited);
  CHECK(exited.status == ExitStatus{false, 3});
  CHECK(exited.left_behind == 0);
}

TEST_CASE("GuardianReportsTheSignalThatEndedAWorker") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  REQUIRE(guardian->Spawn(Shell("kill -SEGV $$")).ok());
  REQUIRE(NextNews(*guardian).kind == GuardianEventKind::kSpawned);
  const GuardianNews exited = NextNews(*guardian);
  REQUIRE(exited.kind == GuardianEventKind::kExited);
  CHECK(exited.status == ExitStatus{true, SIGSEGV});
}

TEST_CASE("WorkerBeginsWithDefaultSignalsNoInputAndAnInitialisedPage") {
  const TemporaryFolder folder;
  signal(SIGPIPE, SIG_IGN);
  const auto guardian = ForkGuardian(folder.path());
  signal(SIGPIPE, SIG_DFL);
  SpawnRequest request = Shell(
      "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\n\\t '; readlink /proc/self/fd/0; "
      "ls /proc/self/fd | wc -l");
  REQUIRE(guardian->Spawn(request).ok());
  const GuardianNews spawned = NextNews(*guardian);
  const int output = spawned.descriptors.output.get();
  CHECK(ReadLine(output) == "SigBlk:0000000000000000SigIgn:0000000000000000/dev/null");
  CHECK(ReadLine(output) == "4");  // three and ls's own
  void* memory = mmap(nullptr, local::kControlPageBytes, PROT_READ, MAP_SHARED,
                      spawned.descriptors.page.get(), 0);
  REQUIRE(memory != MAP_FAILED);
  const auto* page = static_cast<const local::ControlPage*>(memory);
  CHECK(page->magic == local::kControlPageMagic);
  CHECK(page->version == local::kControlPageVersion);
  CHECK(page->commit_word.load() == 0);
  munmap(memory, local::kControlPageBytes);
  CHECK(ftruncate(spawned.descriptors.page.get(), 0) != 0);  // sealed
  CHECK(ftruncate(spawned.descriptors.state.get(), 1 << 20) == 0);
}

TEST_CASE("CommandThatIsNotFoundIsHopelessAndItsMessageSaysSo") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  SpawnRequest request = Shell("");
  request.command = {"no-such-program-of-elastic"};
  REQUIRE(guardian->Spawn(request).ok());
  const GuardianNews failed = NextNews(*guardian);
  REQUIRE(failed.kind == GuardianEventKind::kSpawnFailed);
  CHECK(failed.hopeless);
  CHECK_THAT(failed.message, Catch::Contains("not found"));
}

TEST_CASE("KillReachesGrandchildrenThatLeftTheSessionAndWereOrphaned") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  const Family other = SpawnFamily(*guardian, {AgentIncarnation{7}, 2});
  REQUIRE(guardian->Kill(kFirst, SIGKILL).ok());
  const GuardianNews exited = NextNews(*guardian);
  REQUIRE(exited.kind == GuardianEventKind::kExited);
  CHECK(exited.incarnation == kFirst);
  CHECK(exited.status == ExitStatus{true, SIGKILL});
  CHECK(NoneLives(family));
  for (pid_t pid : other.all) {
    CHECK(Lives(pid));
  }
}

TEST_CASE("WhatAWorkerStartedEndsWithIt") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  REQUIRE(kill(family.worker, SIGTERM) == 0);  // as a crash: the others are not told
  const GuardianNews exited = NextNews(*guardian);
  CHECK(exited.status == ExitStatus{true, SIGTERM});
  CHECK(NoneLives(family));
}

TEST_CASE("StoppedWorkerIsKilledWithAllItsProcesses") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  for (pid_t pid : family.all) {
    REQUIRE(kill(pid, SIGSTOP) == 0);
  }
  REQUIRE(guardian->Kill(kFirst, SIGKILL).ok());
  CHECK(NextNews(*guardian).kind == GuardianEventKind::kExited);
  CHECK(NoneLives(family));
}

TEST_CASE("OtherSignalsReachTheWholeTreeOnce") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  REQUIRE(guardian
              ->Spawn(Shell("trap 'echo got' TERM; sh -c 'trap \"echo inner; exit\" TERM; "
                            "echo ready; while :; do sleep 0.01; done' & wait; wait; exit 4"))
              .ok());
  const GuardianNews spawned = NextNews(*guardian);
  const int output = spawned.descriptors.output.get();
  REQUIRE(ReadLine(output) == "ready");
  REQUIRE(guardian->Kill(kFirst, SIGTERM).ok());
  CHECK(std::set<std::string>{ReadLine(output), ReadLine(output)} ==
        std::set<std::string>{"got", "inner"});
  CHECK(NextNews(*guardian).status == ExitStatus{false, 4});
}

TEST_CASE("WhatAWorkerStartedOutlivesItOnlyWhileItIsAskedToEnd") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  REQUIRE(guardian->Spawn(Shell("(trap '' TERM; echo go; exec sleep 1000) & echo $!; wait")).ok());
  const GuardianNews spawned = NextNews(*guardian);
  const int output = spawned.descriptors.output.get();
  const std::set<std::string> lines{ReadLine(output), ReadLine(output)};
  REQUIRE(lines.contains("go"));
  const pid_t saving = std::stoi(*lines.begin());
  REQUIRE(guardian->Kill(kFirst, SIGTERM).ok());
  REQUIRE(AllGoneWithin(kPatience, {static_cast<pid_t>(spawned.pid)}));
  const int64_t beat = guardian->page().guardian_beat_ns;
  while (guardian->page().guardian_beat_ns <=
         beat + ToNanoseconds(Instant{} + kGuardianBeatInterval)) {
    std::this_thread::yield();
  }
  CHECK(Lives(saving));
  REQUIRE(guardian->Kill(kFirst, SIGKILL).ok());
  CHECK(NextNews(*guardian).status == ExitStatus{true, SIGTERM});
  CHECK_FALSE(Lives(saving));
}

TEST_CASE("GuardianKillsAllWhenTheStampedDeadlineHasPassed") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  guardian->page().kill_at_ns = ToNanoseconds(Now() + 300ms);
  const Instant began = Now();
  const GuardianNews exited = NextNews(*guardian);
  CHECK(exited.kind == GuardianEventKind::kExited);
  CHECK(Now() - began >= 300ms);
  CHECK(Now() - began < 300ms + kKillAllowance);
  CHECK(NoneLives(family));
}

// Runs `agent` as a process of its own, which starts two families and says so.
struct ForeignAgent {
  pid_t pid = 0;
  std::set<pid_t> all;  // workers, descendants and guardian
};
ForeignAgent StartForeignAgent(const std::string& folder) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  ForeignAgent agent;
  agent.pid = fork();
  if (agent.pid == 0) {
    const auto guardian = ForkGuardian(folder);
    std::ofstream(guardian ? TracesIn(folder).worker_socket : "") << "stands for a socket";
    Family families[2] = {SpawnFamily(*guardian), SpawnFamily(*guardian, {{7}, 2})};
    int32_t pids[7] = {guardian->pid()};
    int count = 1;
    for (const Family& family : families) {
      for (pid_t pid : family.all) {
        pids[count++] = pid;
      }
    }
    [[maybe_unused]] const ssize_t written = write(ends[1], pids, sizeof pids);
    for (;;) {
      pause();
    }
  }
  close(ends[1]);
  int32_t pids[7];
  REQUIRE(read(ends[0], pids, sizeof pids) == sizeof pids);
  close(ends[0]);
  agent.all = {std::begin(pids), std::end(pids)};
  return agent;
}

TEST_CASE("KilledAgentTakesAllWorkersAndTheirDescendantsWithItWithinTwoSeconds") {
  const TemporaryFolder folder;
  const ForeignAgent agent = StartForeignAgent(folder.path());
  CHECK(agent.all.size() == 7);
  REQUIRE(kill(agent.pid, SIGKILL) == 0);
  REQUIRE(waitpid(agent.pid, nullptr, 0) == agent.pid);
  CHECK(AllGoneWithin(2s, agent.all));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("StoppedAgentKillsNobodyButTheDeadlineDoes") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  // This process says nothing more to its guardian, as a stopped one: only the page speaks.
  guardian->page().kill_at_ns = ToNanoseconds(Now() + 200ms);
  CHECK(AllGoneWithin(1200ms, family.all));
}

TEST_CASE("FiftySpawnsAndKillsLeaveNoDescriptorAndNoZombie") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  const size_t ours = OpenDescriptors("self");
  for (uint32_t counter = 0; counter <= 50; ++counter) {
    const WorkerIncarnation incarnation{AgentIncarnation{7}, counter + 1};
    REQUIRE(guardian->Spawn(Shell("sleep 1000 & wait", incarnation)).ok());
    const GuardianNews spawned = NextNews(*guardian);
    REQUIRE(spawned.kind == GuardianEventKind::kSpawned);
    REQUIRE(guardian->Kill(incarnation, SIGKILL).ok());
    REQUIRE(NextNews(*guardian).kind == GuardianEventKind::kExited);
  }
  // Commands are handled in order: when this one has failed, the last Drop is done.
  SpawnRequest last = Shell("", {AgentIncarnation{7}, 1000});
  last.command = {"no-such-program-of-elastic"};
  REQUIRE(guardian->Spawn(last).ok());
  REQUIRE(NextNews(*guardian).kind == GuardianEventKind::kSpawnFailed);
  CHECK(OpenDescriptors("self") == ours);
  CHECK(OpenDescriptors(std::to_string(guardian->pid())) == kGuardiansOwnDescriptors);
  static ProcessList list;
  list.Clear();
  list.AddChildrenOf(guardian->pid());
  CHECK(list.size() == 0);
}

// Whoever closes the last descriptor of a large state is busy for seconds.
TEST_CASE("GuardianKeepsNoDescriptorOfAWorkerThatTheAgentHas") {
  const TemporaryFolder folder;
  const auto guardian = ForkGuardian(folder.path());
  REQUIRE(guardian->Spawn(Shell("exit 0")).ok());
  REQUIRE(NextNews(*guardian).kind == GuardianEventKind::kSpawned);
  REQUIRE(NextNews(*guardian).kind == GuardianEventKind::kExited);
  CHECK(OpenDescriptors(std::to_string(guardian->pid())) == kGuardiansOwnDescriptors);
}

TEST_CASE("KilledGuardianLeavesNoWorkerRunning") {
  const TemporaryFolder folder;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto guardian = ForkGuardian(folder.path());
  const Family family = SpawnFamily(*guardian);
  REQUIRE(kill(guardian->pid(), SIGKILL) == 0);
  pollfd ended{guardian->handle(), POLLIN, 0};
  REQUIRE(poll(&ended, 1, 2000) == 1);
  CHECK(guardian->Receive().status().code() == StatusCode::kUnavailable);
  static ProcessList scratch;
  CHECK(KillAllDescendants(scratch));
  CHECK(NoneLives(family));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace elastic::internal
