#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>

#include "collectives/transport/socket.h"
#include "collectives/transport/wire.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/testing/played_worker.h"

// A whole worker that takes its state from a holder that the test plays.

namespace elastic::internal::testing {
namespace {

using Numbers = std::array<int64_t, 4096>;

class PlayedHolder {
 public:
  PlayedHolder() : listener_(std::move(*Listen("127.0.0.1"))) { numbers_.fill(4711); }

  RosterEntry entry() const {
    return {.role = Role::kCopy,
            .incarnation = {AgentIncarnation{9}, 1},
            .rank = -1,
            .previous_rank = -1,
            .host = "127.0.0.1",
            .slot = 0,
            .data = listener_.endpoint,
            .holds_resume = true};
  }
  Held held() const {
    return {.version = {GenerationNumber{1}, 5},
            .digest = HashBytes(numbers_.data(), sizeof numbers_),
            .step = 4};
  }
  // Takes the next fetch and offers `held`.
  void Offer(const Held& held) {
    Await(listener_.socket.get());
    asker_ = Accept(listener_.socket.get());
    REQUIRE(asker_.valid());
    HelloBytes hello;
    Receive(hello.data(), hello.size());
    REQUIRE(DecodeHello(hello)->purpose == Purpose::kFetch);
    const ReplyBytes reply =
        Encode(Reply{.verdict = ReplyVerdict::kOffered, .held = held, .bytes = sizeof numbers_});
    REQUIRE(send(asker_.get(), reply.data(), reply.size(), MSG_NOSIGNAL) == kReplyBytes);
  }
  void AwaitGoAhead() {
    std::byte word{};
    Receive(&word, 1);
    REQUIRE(word == kGoAhead);
  }
  bool AskedToGoAhead() {
    pollfd wait{asker_.get(), POLLIN, 0};
    return poll(&wait, 1, 50) == 1;
  }
  void Send(size_t from, size_t to) {
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers_.data());
    REQUIRE(send(asker_.get(), bytes + from, to - from, MSG_NOSIGNAL) ==
            static_cast<ssize_t>(to - from));
  }
  // `patience` in milliseconds.
  bool HungUp(int patience = ScriptedAgent::kPatienceMs) {
    std::byte word{};
    pollfd wait{asker_.get(), POLLIN, 0};
    return poll(&wait, 1, patience) == 1 && recv(asker_.get(), &word, 1, 0) <= 0;
  }

 private:
  static void Await(int fd) {
    pollfd wait{fd, POLLIN, 0};
    REQUIRE(poll(&wait, 1, ScriptedAgent::kPatienceMs) == 1);
  }
  void Receive(std::byte* data, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
      Await(asker_.get());
      const ssize_t part = recv(asker_.get(), data + got, bytes - got, 0);
      REQUIRE(part > 0);
      got += static_cast<size_t>(part);
    }
  }

  const Listener listener_;
  UniqueFd asker_;
  Numbers numbers_{};
};

struct Newcomer {
  std::future<Status> Join(std::chrono::milliseconds limit) {
    return std::async(std::launch::async,
                      [this, limit] { return worker.session().Join(Now() + limit); });
  }
  void Install(uint32_t number, const Held& resume) {
    RosterEntry own = worker.agent().AwaitReady();
    const Roster roster = MakeRoster({.number = number, .parent = number - 1, .resume = resume},
                                     {own, holder.entry()});
    Install(roster);
  }
  void Install(const Roster& roster) {
    worker.agent().Reset(roster.id);
    worker.agent().SendRoster(roster);
  }
  Numbers& numbers(void* memory) { return *static_cast<Numbers*>(memory); }

  TestFolder folder;
  PlayedHolder holder;
  PlayedWorker worker{folder, 1, sizeof(Numbers)};
};

}  // namespace

TEST_CASE("A join whose deadline passes in mid-transfer returns when nothing is written any more") {
  Newcomer newcomer;
  PlayedHolder& holder = newcomer.holder;
  auto joined = newcomer.Join(std::chrono::milliseconds(300));
  newcomer.Install(2, holder.held());
  holder.Offer(holder.held());
  holder.AwaitGoAhead();
  holder.Send(0, 100);
  REQUIRE(Result(joined).code() == StatusCode::kDeadlineExceeded);
  // `next` is the program's now, and nobody can write into it: the connection has ended.
  REQUIRE(holder.HungUp(0));
  newcomer.numbers(newcomer.worker.session().next()).fill(5);
  // The holder is asked again, as no failure of its own, but not told to go ahead.
  holder.Offer(holder.held());
  REQUIRE_FALSE(holder.AskedToGoAhead());
  REQUIRE(newcomer.numbers(newcomer.worker.session().next())[0] == 5);
  REQUIRE_FALSE(newcomer.worker.agent().held().valid());
  auto again = newcomer.Join(std::chrono::seconds(10));
  holder.AwaitGoAhead();
  holder.Send(0, sizeof(Numbers));
  REQUIRE(Result(again).ok());
  REQUIRE(newcomer.numbers(newcomer.worker.session().current())[4095] == 4711);
  REQUIRE(newcomer.worker.agent().held() == holder.held());
}

TEST_CASE(
    "State that is not what the generation resumes from is not taken, and is asked for again") {
  Newcomer newcomer;
  PlayedHolder& holder = newcomer.holder;
  auto joined = newcomer.Join(std::chrono::seconds(20));
  newcomer.Install(2, holder.held());
  Held other = holder.held();
  other.digest ^= 1;
  holder.Offer(other);
  REQUIRE(holder.HungUp());
  const Instant refused = Now();
  holder.Offer(holder.held());
  REQUIRE(Now() - refused > std::chrono::seconds(1));  // after the pause of a failed holder
  holder.AwaitGoAhead();
  holder.Send(0, sizeof(Numbers));
  REQUIRE(Result(joined).ok());
  REQUIRE(newcomer.worker.agent().held() == holder.held());
}

}  // namespace elastic::internal::testing
