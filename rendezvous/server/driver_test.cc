#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "rendezvous/server/driver.h"
#include "rendezvous/store/journal.h"

namespace elastic::internal {

namespace {

// What a stream does with what it is told: here it counts, from whatever thread it is told.
class CountingSink final : public AgentSink {
 public:
  void Welcome(ServerIncarnation, AgentIncarnation) override { ++welcomed; }
  void Deliver(Directive) override {}
  void Close(Status) override { ++closed; }

  std::atomic<int> welcomed{0};
  std::atomic<int> closed{0};
};

JobSpec TwoHosts() {
  JobSpec job;
  job.job_id = "test-job";
  job.np = job.max_np = 4;
  job.min_np = 2;
  job.hosts = {{"a", 2}, {"b", 2}};
  return job;
}

constexpr uint64_t kReports = 3;

// Streams of one host, one after the other, each with reports, until the driver takes no more.
std::vector<std::shared_ptr<CountingSink>> StreamsUntilTheEnd(Driver& driver,
                                                              const std::string& host,
                                                              std::atomic<int>& opened) {
  std::vector<std::shared_ptr<CountingSink>> sinks;
  for (;;) {
    auto sink = std::make_shared<CountingSink>();
    const ConnectionId connection = driver.NextConnection();
    if (!driver.Open(connection, {.host = host, .slots = 2}, sink)) {
      return sinks;
    }
    sinks.push_back(sink);
    ++opened;
    AgentReported reported{.connection = connection};
    reported.report.host = host;
    for (uint64_t sequence = 1; sequence <= kReports; ++sequence) {
      reported.report.sequence = sequence;
      driver.Post(Event(reported));
    }
    driver.View();  // so that this stream has been seen before the next one takes its place
    driver.Post(Event(AgentDisconnected{connection}));
  }
}

}  // namespace

TEST_CASE("A driver that is stopped under load has welcomed or closed every stream, once") {
  const std::unique_ptr<Journal> journal = MakeMemoryJournal();
  Driver driver(
      TwoHosts(), journal->BeginIncarnation().value(), std::nullopt, *journal,
      {.note = [](Severity, const std::string&) {}, .ended = [](int, const std::string&) {}});
  std::atomic<int> opened{0};
  std::vector<std::shared_ptr<CountingSink>> of_a;
  std::vector<std::shared_ptr<CountingSink>> of_b;
  std::thread a([&] { of_a = StreamsUntilTheEnd(driver, "a", opened); });
  std::thread b([&] { of_b = StreamsUntilTheEnd(driver, "b", opened); });
  while (opened < 100) {
    CHECK(driver.View().np == 4);
  }
  driver.Stop();
  a.join();
  b.join();

  CHECK(!driver.Post(Event(TimePassed{})));
  CHECK(driver.View().np == 0);
  int told = 0;
  for (const auto* sinks : {&of_a, &of_b}) {
    for (const auto& sink : *sinks) {
      CHECK(sink->welcomed <= 1);
      CHECK(sink->closed <= 1);
      CHECK(sink->welcomed + sink->closed >= 1);
      told += sink->welcomed;
    }
  }
  CHECK(told >= 90);
}

}  // namespace elastic::internal
