#include <poll.h>

#include <chrono>

#include "proto/local/store_codec.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/testing/worker_pair.h"

// What a program with its own loop asks for: poll and its descriptor, members, put and get.

namespace elastic::internal::testing {
namespace {

constexpr std::chrono::milliseconds kShort{20};

bool Rings(Session& session) {
  pollfd wait{*session.EventFd(), POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

LoopEvent Told(Session& session) {
  const StatusOr<LoopEvent> event = session.Poll();
  REQUIRE(event.ok());
  return *event;
}

TEST_CASE("A worker starts, waits once it has declared readiness, and is a member when let in") {
  TestFolder folder;
  PlayedWorker worker(folder, 1);
  Session& session = worker.session();
  REQUIRE(session.standing() == Standing::kStarting);
  REQUIRE(session.members().empty());
  REQUIRE(session.Join(Now() + kShort).code() == StatusCode::kDeadlineExceeded);
  REQUIRE(session.standing() == Standing::kWaiting);
  RosterEntry entry = worker.agent().AwaitReady();
  const Roster roster = MakeRoster({.number = 1}, {entry});
  worker.agent().Reset(roster.id);
  worker.agent().SendRoster(roster);
  auto joined = worker.Join();
  REQUIRE(Result(joined).ok());
  REQUIRE(session.standing() == Standing::kMember);
  REQUIRE(Told(session) == LoopEvent::kContinue);
  REQUIRE_FALSE(Rings(session));
}

TEST_CASE("The end of the generation is told and rung for until the next one is joined") {
  Pair pair;
  Session& session = pair.first.session();
  REQUIRE(Told(session) == LoopEvent::kContinue);
  REQUIRE_FALSE(Rings(session));
  pair.first.agent().Fence();
  pollfd wait{*session.EventFd(), POLLIN, 0};
  REQUIRE(poll(&wait, 1, ScriptedAgent::kPatienceMs) == 1);
  REQUIRE(Told(session) == LoopEvent::kRestore);
  REQUIRE(Told(session) == LoopEvent::kRestore);
  REQUIRE(Rings(session));
  REQUIRE(session.standing() == Standing::kWaiting);
  auto joined = pair.first.Join();
  pair.Install(MakeRoster({.number = 2, .parent = 1, .resume = pair.first.agent().held()},
                          {pair.Holder(pair.first, 0)}));
  REQUIRE(Result(joined).ok());
  REQUIRE(Told(session) == LoopEvent::kContinue);
  REQUIRE_FALSE(Rings(session));
}

TEST_CASE("A newcomer: a commit is wanted, then rank and size have changed, each told once rung") {
  Pair pair;
  Session& session = pair.first.session();
  REQUIRE_FALSE(Rings(session));
  PlayedWorker third(pair.folder, 3);
  auto joined = third.JoinUntilReady();
  pair.PrepareGrowth(third);
  pollfd wait{*session.EventFd(), POLLIN, 0};
  REQUIRE(poll(&wait, 1, ScriptedAgent::kPatienceMs) == 1);
  REQUIRE(Told(session) == LoopEvent::kCommitWanted);
  REQUIRE_FALSE(Rings(session));
  REQUIRE(Told(session) == LoopEvent::kCommitWanted);
  uint64_t step = 1;
  while (session.membership()->generation.value == 1) {
    REQUIRE(step < 10000);
    pair.Step(step++);
  }
  REQUIRE(Result(joined).ok());
  REQUIRE(Rings(session));
  REQUIRE(Told(session) == LoopEvent::kReformed);
  REQUIRE(Told(session) == LoopEvent::kContinue);
  REQUIRE_FALSE(Rings(session));
  REQUIRE(Told(third.session()) == LoopEvent::kContinue);
  const std::vector<MemberView> members = session.members();
  REQUIRE(members.size() == 3);
  REQUIRE(members[1].previous_rank == 1);
  REQUIRE(members[2].previous_rank == -1);
  REQUIRE(members[2].incarnation == third.session().incarnation());
  REQUIRE(members[2].data.port == third.entry().data.port);
}

TEST_CASE("A wish to stop: a commit is wanted, and after it all are told, until they finish") {
  Pair pair;
  Session& session = pair.first.session();
  pair.Step(1);
  REQUIRE_FALSE(Rings(session));
  session.RequestStop();
  REQUIRE(Rings(session));
  REQUIRE(Told(session) == LoopEvent::kCommitWanted);
  REQUIRE_FALSE(Rings(session));
  REQUIRE(Told(pair.second.session()) == LoopEvent::kContinue);
  pair.Step(2);
  for (Session* each : {&session, &pair.second.session()}) {
    REQUIRE(Rings(*each));
    REQUIRE(Told(*each) == LoopEvent::kStopAt);
    REQUIRE(Told(*each) == LoopEvent::kStopAt);
    REQUIRE(Rings(*each));
  }
}

// A call of the program's thread, and the frame with which its agent is asked.
std::future<Status> Getting(Session& session, std::string& value, Session::Deadline deadline) {
  return std::async(std::launch::async, [&session, &value, deadline]() -> Status {
    ASSIGN_OR_RETURN(value, session.Get("id", deadline));
    return OkStatus();
  });
}

local::GetCall AwaitGet(PlayedWorker& worker) {
  const local::Frame frame = worker.agent().Await(local::FrameKind::kGet);
  const StatusOr<local::GetCall> call = local::GetOf(frame);
  REQUIRE(call.ok());
  return *call;
}

TEST_CASE("A get names the generation, and is answered by the value") {
  Pair pair;
  std::string value;
  auto get = Getting(pair.first.session(), value, std::nullopt);
  const local::GetCall call = AwaitGet(pair.first);
  REQUIRE(call.key.name == "id");
  REQUIRE(call.key.generation.number.value == 1);
  REQUIRE(Pending(get));
  pair.first.agent().Send(
      local::StoreReplyFrame({call.request, StatusCode::kOk, std::string("a\0b", 3)}));
  REQUIRE(Result(get).ok());
  REQUIRE(value == std::string("a\0b", 3));
}

TEST_CASE("An answer that comes after its call's deadline is not taken for the next call's") {
  Pair pair;
  std::string value;
  auto late = Getting(pair.first.session(), value, Now() + kShort);
  const local::GetCall old = AwaitGet(pair.first);
  REQUIRE(Result(late).code() == StatusCode::kDeadlineExceeded);
  auto get = Getting(pair.first.session(), value, std::nullopt);
  const local::GetCall call = AwaitGet(pair.first);
  pair.first.agent().Send(local::StoreReplyFrame({old.request, StatusCode::kOk, "old"}));
  REQUIRE(Pending(get));
  pair.first.agent().Send(local::StoreReplyFrame({call.request, StatusCode::kOk, "new"}));
  REQUIRE(Result(get).ok());
  REQUIRE(value == "new");
}

TEST_CASE(
    "Scenario 64: the end of the generation ends a get and a put, whatever is answered later") {
  Pair pair;
  std::string value;
  auto get = Getting(pair.first.session(), value, std::nullopt);
  AwaitGet(pair.first);
  pair.first.agent().Fence();
  REQUIRE(Result(get).code() == StatusCode::kAborted);
  REQUIRE(pair.first.session().Put("id", "x", std::nullopt).code() == StatusCode::kAborted);
}

TEST_CASE("A put that is refused ends with the agent's text") {
  Pair pair;
  Session& session = pair.first.session();
  auto put = std::async(std::launch::async, [&] { return session.Put("id", "x", std::nullopt); });
  const local::Frame frame = pair.first.agent().Await(local::FrameKind::kPut);
  const StatusOr<local::PutCall> call = local::PutOf(frame);
  REQUIRE(call.ok());
  REQUIRE(call->put.value == "x");
  pair.first.agent().Send(
      local::StoreReplyFrame({call->request, StatusCode::kInvalidArgument, "holds other bytes"}));
  const Status status = Result(put);
  REQUIRE(status.code() == StatusCode::kInvalidArgument);
  REQUIRE(status.message() == "holds other bytes");
}

}  // namespace
}  // namespace elastic::internal::testing
