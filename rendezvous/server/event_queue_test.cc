#include <catch2/catch.hpp>
#include <thread>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/server/event_queue.h"

namespace elastic::internal {

namespace {

EventQueue::Item ReportOf(uint64_t connection, uint64_t sequence) {
  AgentReported event{.connection = {connection}};
  event.report.sequence = sequence;
  return Event(std::move(event));
}

const AgentReported& AsReport(const EventQueue::Item& item) {
  return std::get<AgentReported>(std::get<Event>(item));
}

}  // namespace

TEST_CASE("A newer report of the same stream takes the place of one that waits") {
  EventQueue queue;
  REQUIRE(queue.Push(ReportOf(1, 1)));
  REQUIRE(queue.Push(ReportOf(2, 7)));
  REQUIRE(queue.Push(ReportOf(1, 2)));
  REQUIRE(queue.Push(Event(AgentDisconnected{{1}})));

  const std::optional<EventQueue::Item> first = queue.Pop(Now());
  REQUIRE(first.has_value());
  CHECK(AsReport(*first).connection == ConnectionId{1});
  CHECK(AsReport(*first).report.sequence == 2);
  CHECK(AsReport(*queue.Pop(Now())).report.sequence == 7);
  CHECK(std::holds_alternative<AgentDisconnected>(std::get<Event>(*queue.Pop(Now()))));
  CHECK(!queue.Pop(Now()).has_value());
}

TEST_CASE("A report that comes after the one before was taken is an item of its own") {
  EventQueue queue;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    REQUIRE(queue.Push(Event(TimePassed{})));
    REQUIRE(queue.Push(ReportOf(1, sequence)));
    CHECK(std::holds_alternative<TimePassed>(std::get<Event>(*queue.Pop(Now()))));
    CHECK(AsReport(*queue.Pop(Now())).report.sequence == sequence);
  }
}

TEST_CASE("A full queue refuses everything but newer reports and the ends of streams") {
  EventQueue queue;
  REQUIRE(queue.Push(ReportOf(1, 1)));
  for (size_t i = 1; i < kDriverQueueMax; ++i) {
    REQUIRE(queue.Push(Event(TimePassed{})));
  }
  CHECK(!queue.Push(Event(TimePassed{})));
  CHECK(!queue.Push(ReportOf(2, 1)));
  CHECK(!queue.Push(ViewRequest([](const JobView&) {})));
  CHECK(queue.Push(ReportOf(1, 2)));
  CHECK(queue.Push(Event(AgentDisconnected{{1}})));
  CHECK(AsReport(*queue.Pop(Now())).report.sequence == 2);
}

TEST_CASE("A closed queue takes nothing and still gives out what it has") {
  EventQueue queue;
  REQUIRE(queue.Push(ReportOf(1, 1)));
  queue.Close();
  CHECK(!queue.Push(ReportOf(1, 2)));
  CHECK(AsReport(*queue.Pop(std::nullopt)).report.sequence == 1);
  CHECK(!queue.Pop(std::nullopt).has_value());
}

TEST_CASE("Pop waits until an item comes, the time has passed or the queue is closed") {
  EventQueue queue;
  const Instant start = Now();
  CHECK(!queue.Pop(start + std::chrono::milliseconds(20)).has_value());
  CHECK(Now() - start >= std::chrono::milliseconds(20));

  std::thread pusher([&] { queue.Push(Event(TimePassed{})); });
  CHECK(queue.Pop(std::nullopt).has_value());
  pusher.join();
  std::thread closer([&] { queue.Close(); });
  CHECK(!queue.Pop(std::nullopt).has_value());
  closer.join();
}

}  // namespace elastic::internal
