#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

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
    REQUIRE(TakeHello()->purpose == Purpose::kFetch);
    SendOffer(held);
  }
  void AwaitFetch() {
    std::optional<Hello> hello;
    while (!hello || hello->purpose != Purpose::kFetch) {
      Await(listener_.socket.get());
      hello = TakeHello();
    }
  }
  void SendOffer(const Held& held) {
    const ReplyBytes reply =
        Encode(Reply{.verdict = ReplyVerdict::kOffered, .held = held, .bytes = sizeof numbers_});
    REQUIRE(send(asker_.get(), reply.data(), reply.size(), MSG_NOSIGNAL) == kReplyBytes);
  }
  // The next caller becomes the asker; nothing if it has hung up already.
  std::optional<Hello> TakeHello() {
    asker_ = Accept(listener_.socket.get());
    REQUIRE(asker_.valid());
    HelloBytes bytes;
    for (size_t got = 0; got < bytes.size();) {
      Await(asker_.get());
      const ssize_t part = recv(asker_.get(), bytes.data() + got, bytes.size() - got, 0);
      if (part <= 0) {
        return std::nullopt;
      }
      got += static_cast<size_t>(part);
    }
    return DecodeHello(bytes);
  }
  // Offers to whoever asks for the state of `generation`, until one of them goes ahead.
  void OfferUntilGoAhead(GenerationNumber generation, const Held& held) {
    std::vector<UniqueFd> others;  // edges, and fetches of other generations, have no answer
    while (true) {
      std::array<pollfd, 2> waits{pollfd{listener_.socket.get(), POLLIN, 0},
                                  pollfd{asker_.get(), POLLIN, 0}};
      REQUIRE(poll(waits.data(), waits.size(), 5000) > 0);
      std::byte word{};
      if (waits[1].revents != 0 && recv(asker_.get(), &word, 1, 0) == 1) {
        REQUIRE(word == kGoAhead);
        return;
      }
      UniqueFd before = std::move(asker_);
      Await(listener_.socket.get());
      const std::optional<Hello> hello = TakeHello();
      if (hello && hello->purpose == Purpose::kFetch && hello->generation.number == generation) {
        SendOffer(held);
      } else {
        others.push_back(std::exchange(asker_, std::move(before)));
      }
    }
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

TEST_CASE("An offer is not taken for the fetch that has replaced the one it answers (P25)") {
  for (int round = 0; round < 40; ++round) {
    Newcomer newcomer;
    PlayedHolder& holder = newcomer.holder;
    ScriptedAgent& agent = newcomer.worker.agent();
    auto joined = newcomer.Join(std::chrono::seconds(20));
    RosterEntry own = agent.AwaitReady();
    own.previous_rank = -1;
    RosterEntry member = holder.entry();
    member.role = Role::kWorker;
    member.rank = 0;
    member.previous_rank = 0;
    member.holds_resume = false;
    const auto prepared = [&](uint32_t number) {
      return MakeRoster({.number = number, .parent = 1, .kind = GenerationKind::kPrepared},
                        {member, own});
    };
    agent.SendRoster(prepared(2));
    holder.AwaitFetch();
    // All in the same moment: a second successor, the first one again, and that one's offer.
    agent.SendRoster(prepared(3));
    agent.SendRoster(prepared(2));
    holder.SendOffer(holder.held());
    holder.OfferUntilGoAhead(GenerationNumber{2}, holder.held());
    holder.Send(0, sizeof(Numbers));
    agent.Send(local::MakeFrame(local::FrameKind::kLeave));
    REQUIRE(Result(joined).code() != StatusCode::kDeadlineExceeded);
  }
}

}  // namespace elastic::internal::testing
