// The agent's driver with a real guardian and real processes; the test plays the server.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <future>
#include <map>
#include <sstream>

#include "launcher/agent/futex_watch.h"
#include "launcher/agent/test_agent.h"

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;

TEST_CASE("AgentSpawnsWorkersMovesThemIntoAGenerationAndReportsThatTheyEntered") {
  TestAgent agent({});
  const Pair pair(agent);
  CHECK(pair.entered.installed == pair.roster.id);
  for (const WorkerReport& worker : pair.entered.workers) {
    CHECK(worker.life == WorkerLife::kMember);
    CHECK(worker.word.generation.value == 1);
    CHECK(worker.generation == pair.roster.id);
  }
  CHECK(pair.entered.copies.valid());
}

TEST_CASE("DeathOfAWorkerFencesItsNeighbourRingsItAndIsReportedWithBothWords") {
  TestAgent agent({});
  const Pair pair(agent);
  REQUIRE(kill(pair.pid(0), SIGKILL) == 0);
  const AgentReport report =
      agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[0]); });
  const WorkerReport* const neighbour = Of(report, kWorker[1]);
  REQUIRE(neighbour != nullptr);
  CHECK(neighbour->word.fenced);
  CHECK(neighbour->life == WorkerLife::kMember);
  CHECK(Of(report, kWorker[0])->word.final_after_fence());
  CHECK(Of(report, kWorker[0])->held.version == StateVersion{GenerationNumber{1}, 1});
  CHECK(report.marks == std::vector<Mark>{{GenerationNumber{1}, kWorker[0]}});
  const AgentReport reaped =
      agent.WaitFor([](const AgentReport& came) { return Of(came, kWorker[0])->exit.has_value(); });
  CHECK(Of(reaped, kWorker[0])->exit == ExitStatus{true, SIGKILL});
  CHECK(Of(reaped, kWorker[0])->cause == DeathCause::kOwnerDied);
}

TEST_CASE("StoppedWorkerIsLostAtItsFirstMissedBeatAndKilled") {
  TestAgent agent({});
  const Pair pair(agent);
  const Instant began = Now();
  REQUIRE(kill(pair.pid(1), SIGSTOP) == 0);
  const AgentReport report =
      agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[1]); });
  CHECK(Now() - began < 1s);
  CHECK(Of(report, kWorker[1])->cause == DeathCause::kStopped);
  CHECK(Of(report, kWorker[0])->word.fenced);
  CHECK(AllGoneWithin(1s, {pair.pid(1)}));
}

TEST_CASE("FramesSentBeforeTheExitAreReadBeforeTheExitIsReported") {
  TestAgent agent({.command = Command("finish")});
  agent.Register();
  agent.WantSlots({0, 1});
  agent.Install(agent.WaitForReady(2));
  const AgentReport report = agent.WaitFor(
      [](const AgentReport& came) { return IsDead(came, kWorker[0]) && IsDead(came, kWorker[1]); });
  for (int i : {0, 1}) {
    REQUIRE(Of(report, kWorker[i])->finished.has_value());
    CHECK(Of(report, kWorker[i])->finished->step == 17);
  }
}

// An older container runtime's answer to a call that its filter does not know.
void ForbidFutexWaitv() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(3);
  }
}

TEST_CASE("FutexWatchUnderAFilterIsUnsupportedAndWhereItIsUsedAllTheSameSeesDeathsLater") {
  REQUIRE(FutexWatch::Supported());
  const pid_t child = fork();
  if (child == 0) {
    ForbidFutexWaitv();
    if (FutexWatch::Supported()) {
      _exit(4);
    }
    std::promise<OwnerEnd> ended;
    FutexWatch watch([&ended](WorkerIncarnation, OwnerEnd how) { ended.set_value(how); });
    uint32_t word = 4711;  // held by that thread
    watch.Add(kWorker[0], &word);
    std::atomic_ref<uint32_t>(word).fetch_or(FUTEX_OWNER_DIED);
    std::future<OwnerEnd> end = ended.get_future();
    _exit(end.wait_for(kPatience) == std::future_status::ready && end.get() == OwnerEnd::kDied ? 0
                                                                                               : 5);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("WorkerThatShutsItsRuntimeDownIsLostAtOnceButTellsItsOwnExitCode") {
  TestAgent agent({.command = Command("give-up")});
  agent.Register();
  agent.WantSlots({0, 1});
  agent.Install(agent.WaitForReady(2));
  const AgentReport lost =
      agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[0]); });
  CHECK(Of(lost, kWorker[0])->word.fenced);
  const AgentReport reaped =
      agent.WaitFor([](const AgentReport& came) { return Of(came, kWorker[0])->exit.has_value(); });
  CHECK(Of(reaped, kWorker[0])->exit == ExitStatus{false, 7});
  CHECK(Of(reaped, kWorker[0])->cause == DeathCause::kExited);
}

TEST_CASE("AccusationsAreReportedWithTheirGeneration") {
  TestAgent agent({.command = Command("accuse")});
  const Pair pair(agent);
  const AgentReport report = agent.WaitFor([](const AgentReport& came) {
    const WorkerReport* worker = Of(came, kWorker[0]);
    return worker != nullptr && !worker->accusations.empty();
  });
  CHECK(Of(report, kWorker[0])->accusations ==
        std::vector<Accusation>{{pair.roster.id, kWorker[1]}});
}

TEST_CASE("StateOfADeadWorkerIsServedUntilItIsForgotten") {
  TestAgent agent({});
  const Pair pair(agent);
  REQUIRE(kill(pair.pid(0), SIGKILL) == 0);
  const AgentReport report = agent.WaitFor([](const AgentReport& came) {
    return IsDead(came, kWorker[0]) && Of(came, kWorker[0])->exit.has_value();
  });
  auto context = Context::Create({.listen_address = "127.0.0.1",
                                  .job_id = "job",
                                  .job_nonce = 99,
                                  .self = WorkerIncarnation{AgentIncarnation{6}, 1}});
  REQUIRE(context.ok());
  Roster successor = pair.roster;
  successor.id.number = GenerationNumber{2};
  RosterEntry holder;
  holder.role = Role::kCopy;
  holder.incarnation = kWorker[0];
  holder.data = report.copies;
  const auto fetch = [&](std::vector<std::byte>& memory) {
    std::optional<StatusOr<Held>> result;
    (*context)->Fetch(
        successor, holder,
        [&](const Context::Offer& offer) {
          memory.resize(offer.bytes);
          (*context)->AcceptOffer(memory);
        },
        [&](const StatusOr<Held>& held) { result = held; });
    for (const Instant end = Now() + kPatience; !result && Now() < end;) {
      pollfd ready{(*context)->event_fd(), POLLIN, 0};
      poll(&ready, 1, 100);
      (*context)->Progress();
    }
    REQUIRE(result.has_value());
    return *result;
  };
  std::vector<std::byte> memory;
  const StatusOr<Held> held = fetch(memory);
  REQUIRE(held.ok());
  CHECK(*held == Of(report, kWorker[0])->held);
  CHECK(std::string(reinterpret_cast<const char*>(memory.data())) == "the committed state");

  agent.Direct([](Directive& directive) { directive.forget = {kWorker[0]}; });
  agent.WaitFor([](const AgentReport& came) { return Of(came, kWorker[0]) == nullptr; });
  CHECK(fetch(memory).status().code() == StatusCode::kUnavailable);
}

TEST_CASE("WorkerBehindAWrapperIsKnownByItsAncestorsAndAnOrphanByItsMark") {
  const std::string worker = ELASTIC_AGENT_TEST_WORKER;
  const std::string script =
      GENERATE_COPY(worker + " & wait", "setsid sh -c '" + worker + " & wait' & wait",
                    // The middle process ends, so that the worker's parent is the guardian.
                    "(setsid " + worker + " & ); exec tail -f /dev/null");
  TestAgent agent({.command = {"/bin/sh", "-c", script}});
  const Pair pair(agent);
  CHECK(pair.entered.workers.size() == 2);
}

TEST_CASE("WrapperOfADeadWorkerHasTimeToTellTheExitCode") {
  const std::string worker = ELASTIC_AGENT_TEST_WORKER;
  const bool ends = GENERATE(true, false);
  TestAgent agent({.command = {"/bin/sh", "-c",
                               worker + " finish; " + (ends ? "exit 7" : "exec tail -f /dev/null")},
                   .slots = 1});
  agent.Register();
  agent.WantSlots({0});
  agent.Install(agent.WaitForReady(1));
  const AgentReport report = agent.WaitFor([](const AgentReport& came) {
    return IsDead(came, kWorker[0]) && Of(came, kWorker[0])->exit.has_value();
  });
  CHECK(Of(report, kWorker[0])->exit == (ends ? ExitStatus{false, 7} : ExitStatus{true, SIGKILL}));
}

TEST_CASE("FrameThatIsNoneIsRefusedWithAMessageAndTheAgentGoesOn") {
  TestAgent agent({.command = Command("garbage"), .slots = 1});
  agent.Register();
  agent.WantSlots({0});
  agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[0]); });
  CHECK(agent.WaitForLine("[here:0]<stdout>:refused: "));
  CHECK(agent.WaitForLine("[here:0]<stdout>:closed"));
}

TEST_CASE("ReadinessWithoutTheOwnerMutexIsRefused") {
  TestAgent agent({.command = Command("hasty"), .slots = 1});
  agent.Register();
  agent.WantSlots({0});
  agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[0]); });
  CHECK(agent.WaitForLine("refused: READY before the owner mutex"));
}

TEST_CASE("SecondConnectionOfASlotIsRefused") {
  TestAgent agent({.command = Command("twice"), .slots = 1});
  agent.Register();
  agent.WantSlots({0});
  agent.WaitFor([](const AgentReport& came) { return IsDead(came, kWorker[0]); });
  CHECK(agent.WaitForLine("one process per slot may use the runtime"));
}

TEST_CASE("ProcessThatTheAgentDidNotStartIsRefused") {
  TestAgent agent({.slots = 1});
  agent.Register();
  agent.WantSlots({0});
  agent.WaitForReady(1);
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, agent.socket(), sizeof address.sun_path);
  REQUIRE(connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  local::Hello hello{};
  hello.version_min = hello.version_max = 1;
  std::strcpy(hello.job_id, "job");
  const local::Frame frame = local::MakeFrame(local::FrameKind::kHello, hello);
  REQUIRE(send(socket_fd.get(), frame.data(), frame.size(), 0) ==
          static_cast<ssize_t>(frame.size()));
  local::Frame answer(4096);
  pollfd readable{socket_fd.get(), POLLIN, 0};
  REQUIRE(poll(&readable, 1, 5000) == 1);
  answer.resize(static_cast<size_t>(recv(socket_fd.get(), answer.data(), answer.size(), 0)));
  REQUIRE(local::CheckFrame(answer).value() == local::FrameKind::kRefused);
  CHECK_THAT(local::BodyOf<local::Refused>(answer)->message,
             Catch::Contains("was not started by this agent"));
}

TEST_CASE("LauncherThatIsGoneStopsTheWorkersAndEndsTheAgent") {
  TestAgent agent({});
  const Pair pair(agent);
  agent.CloseLauncher();
  CHECK(agent.WaitForEnd() == 0);
  CHECK(AllGoneWithin(Duration(0), {pair.pid(0), pair.pid(1)}));
}

TEST_CASE("WorkersThatIgnoreTheStopAreKilledAfterTheGracePeriod") {
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/ready";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const UniqueFd ready(open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  TestAgent agent({.command = {"/bin/sh", "-c",
                               "trap '' TERM; echo ready > " + fifo + "; exec tail -f /dev/null"},
                   .slots = 1,
                   .grace_period = 300ms});
  agent.Register();
  agent.WantSlots({0});
  const AgentReport report =
      agent.WaitFor([](const AgentReport& came) { return came.workers.size() == 1; });
  REQUIRE(ReadLine(ready.get()) == "ready");
  const Instant began = Now();
  agent.CloseLauncher();
  CHECK(agent.WaitForEnd() == 0);
  CHECK(Now() - began >= 300ms);
  CHECK(Now() - began < 1500ms);
  CHECK(AllGoneWithin(Duration(0), {static_cast<pid_t>(report.workers[0].pid)}));
}

TEST_CASE("AgentWhoseGuardianDiesOrStopsKillsTheWorkersAndEndsWithinTwoSeconds") {
  TestAgent agent({});
  const Pair pair(agent);
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  const Instant began = Now();
  REQUIRE(kill(agent.guardian().pid(), signal) == 0);
  CHECK(agent.WaitForEnd() == kAgentExitGuardianLost);
  static ProcessList scratch;
  if (signal == SIGSTOP) {
    kill(agent.guardian().pid(), SIGKILL);  // as ~GuardianClient does after its limit
  }
  CHECK(KillAllDescendants(scratch));
  CHECK(AllGoneWithin(Duration(0), {pair.pid(0), pair.pid(1)}));
  CHECK(Now() - began < 2s);
}

TEST_CASE("OutputThatNobodyReadsDoesNotHoldUpAFence") {
  // The workers themselves say nothing, or they would wait for the reader, as they should.
  const std::string worker = ELASTIC_AGENT_TEST_WORKER;
  TestAgent agent(
      {.command = {"/bin/sh", "-c", worker + " chatter & exec " + worker + " > /dev/null"},
       .read_output = false});
  const Pair pair(agent);
  const Instant began = Now();
  REQUIRE(kill(pair.pid(0), SIGKILL) == 0);
  agent.WaitFor([](const AgentReport& came) {
    return IsDead(came, kWorker[0]) && Of(came, kWorker[1])->word.fenced;
  });
  CHECK(Now() - began < 500ms);
}

TEST_CASE("OutputComesLineByLineWithTheRankAndLosesNothing") {
  TestAgent agent({.command = {"/bin/sh", "-c",
                               "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; echo error $i >&2; "
                               "done; printf 'no newline'"},
                   .slots = 3});
  agent.Register();
  agent.WantSlots({0, 1, 2});
  agent.WaitFor([](const AgentReport& came) {
    return came.workers.size() >= 3 &&
           std::ranges::all_of(kWorker, [&](WorkerIncarnation one) { return IsDead(came, one); });
  });
  agent.Direct([](Directive& directive) { directive.stop = StopMode::kImmediate; });
  agent.CloseLauncher();
  agent.WaitForEnd();
  agent.FinishOutput();
  std::istringstream lines(agent.Lines());
  std::map<std::string, int> counts;
  for (std::string line; std::getline(lines, line);) {
    ++counts[line];
  }
  for (int slot = 0; slot < 3; ++slot) {
    const std::string label = "[here:" + std::to_string(slot) + "]";
    for (int i = 1; i <= 9; ++i) {
      CHECK(counts[label + "<stdout>:line " + std::to_string(i)] >= 1);
      CHECK(counts[label + "<stderr>:error " + std::to_string(i)] >= 1);
    }
    CHECK(counts[label + "<stdout>:no newline"] >= 1);
  }
}

TEST_CASE("CommandThatIsNotFoundIsReportedAsAnErrorOfTheCommand") {
  TestAgent agent({.command = {"no-such-program-of-elastic"}, .slots = 1});
  agent.Register();
  agent.WantSlots({0});
  const AgentReport report =
      agent.WaitFor([](const AgentReport& came) { return came.spawn_error.has_value(); });
  CHECK_THAT(*report.spawn_error,
             Catch::Contains("no-such-program-of-elastic") && Catch::Contains("not found"));
}

TEST_CASE("TwentyLivesOfAnAgentLeaveNoDescriptorProcessOrFile") {
  const size_t before = OpenDescriptors("self");
  for (int life = 0; life < 20; ++life) {
    TestAgent agent({});
    agent.Register();
    agent.WantSlots({0, 1});
    agent.WaitForReady(2);
    agent.CloseLauncher();
    CHECK(agent.WaitForEnd() == 0);
  }
  CHECK(OpenDescriptors("self") == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace
}  // namespace elastic::internal
