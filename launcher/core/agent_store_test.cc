// Put and get on one host: what the server is told, how often, and when calls end.
#include <catch2/catch.hpp>

#include "launcher/core/agent_fixture.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/limits.h"

namespace elastic::internal::agent_test {
namespace {

Roster First() {
  return MakeRoster(1, 0, GenerationKind::kInstalled, {Worker(1), Worker(2), Elsewhere(1)});
}

// Workers 1 and 2 are in generation 1.
struct StoreFixture : Fixture {
  StoreFixture() {
    Start();
    Install(First());
  }
  StoreKey Key(const std::string& name = "id") const { return {First().id, name}; }
  std::string Put(uint32_t worker, uint32_t request, const std::string& value) {
    return Feed(agent_event::PutCame{Worker(worker), request, {Key(), value}});
  }
  std::string Get(uint32_t worker, uint32_t request, const std::string& name = "id") {
    return Feed(agent_event::GetCame{Worker(worker), request, Key(name)});
  }
  Directive Answering(const std::string& value, StoreVerdict verdict) {
    Directive directive = MakeDirective();
    directive.installed = First();
    directive.put_answers.push_back({Key(), HashText(value), verdict});
    return directive;
  }
  std::string Answer(const std::string& value, StoreVerdict verdict) {
    return Feed(agent_event::DirectiveCame{Answering(value, verdict)});
  }
};

TEST_CASE("A put is told in every report until the server has answered it") {
  StoreFixture host;
  CHECK(host.Put(1, 5, "x") == "report");
  CHECK(host.report.puts == std::vector<StorePut>{{host.Key(), "x"}});
  host.report = host.core.MakeReport(host.now);
  CHECK(host.report.puts.size() == 1);
  CHECK(host.Answer("x", StoreVerdict::kStored) == "answer 5 of 7.1: OK ");
  host.report = host.core.MakeReport(host.now);
  CHECK(host.report.puts.empty());
  SECTION("an answer that comes twice changes nothing") {
    CHECK(host.Answer("x", StoreVerdict::kStored).empty());
  }
  SECTION("another worker of the host has the value at once") {
    CHECK(host.Get(2, 6) == "answer 6 of 7.2: OK x");
  }
  SECTION("a later put is judged by what stands there") {
    CHECK(host.Put(2, 6, "x") == "answer 6 of 7.2: OK ");
    CHECK(host.Put(2, 7, "y") == "answer 7 of 7.2: INVALID_ARGUMENT");
  }
  SECTION("a server without its predecessor's memory is told again (P1)") {
    Directive fresh = host.MakeDirective();
    fresh.server = ServerIncarnation{2};
    fresh.sequence = 1;
    fresh.installed = First();
    std::string said;
    if (GENERATE(true, false)) {  // the welcome comes first, or late
      said = host.Feed(agent_event::Registered{kAgent, ServerIncarnation{2}});
    }
    said += host.Feed(agent_event::DirectiveCame{fresh});
    CHECK_THAT(said, Catch::Contains("report"));
    CHECK(host.report.puts == std::vector<StorePut>{{host.Key(), "x"}});
    Directive answer = host.Answering("x", StoreVerdict::kStored);
    answer.server = ServerIncarnation{2};
    CHECK(host.Feed(agent_event::DirectiveCame{answer}).empty());
    host.report = host.core.MakeReport(host.now);
    CHECK(host.report.puts.empty());
  }
}

TEST_CASE("A get is told until the value comes, and ends for all who wait for it") {
  StoreFixture host;
  CHECK(host.Get(1, 3) == "report");
  CHECK(host.Get(2, 4).empty());  // nothing new for the server
  CHECK(host.report.wanted == std::vector<StoreKey>{host.Key()});
  Directive directive = host.MakeDirective();
  directive.installed = First();
  directive.values.push_back({host.Key(), "x"});
  CHECK(host.Feed(agent_event::DirectiveCame{directive}) ==
        "answer 3 of 7.1: OK x; answer 4 of 7.2: OK x");
  host.report = host.core.MakeReport(host.now);
  CHECK(host.report.wanted.empty());
}

TEST_CASE("A call that is made again after its deadline takes the place of the one before") {
  StoreFixture host;
  CHECK(host.Put(1, 3, "x") == "report");
  CHECK(host.Put(1, 4, "x").empty());
  CHECK(host.Answer("x", StoreVerdict::kStored) == "answer 4 of 7.1: OK ");
  CHECK(host.Get(1, 5, "other") == "report");
  CHECK(host.Get(1, 6, "other").empty());
  Directive directive = host.MakeDirective();
  directive.installed = First();
  directive.values.push_back({host.Key("other"), "y"});
  CHECK(host.Feed(agent_event::DirectiveCame{directive}) == "answer 6 of 7.1: OK y");
}

TEST_CASE("Two workers of one host put different bytes under one key: the first one counts") {
  StoreFixture host;
  host.Put(1, 5, "x");
  host.Put(2, 6, "y");
  CHECK(host.report.puts == std::vector<StorePut>{{host.Key(), "x"}});
  SECTION("it is stored") {
    CHECK(host.Answer("x", StoreVerdict::kStored) ==
          "answer 5 of 7.1: OK ; answer 6 of 7.2: INVALID_ARGUMENT");
    CHECK_THAT(host.answers.back().bytes,
               Catch::Contains("'id'") && Catch::Contains("another key"));
  }
  SECTION("another host was first: then the second one is told to the server") {
    CHECK(host.Answer("x", StoreVerdict::kDiffers) == "answer 5 of 7.1: INVALID_ARGUMENT; report");
    CHECK(host.report.puts == std::vector<StorePut>{{host.Key(), "y"}});
  }
}

TEST_CASE("The limit of a generation is an error of its own") {
  StoreFixture host;
  host.Put(1, 5, "x");
  CHECK(host.Answer("x", StoreVerdict::kFull) == "answer 5 of 7.1: RESOURCE_EXHAUSTED; report");
  CHECK_THAT(host.answers.back().bytes, Catch::Contains(std::to_string(kStoreBytesMax)));
  const std::string large(kStoreBytesMax, 'x');
  CHECK(host.Put(1, 6, large) == "answer 6 of 7.1: RESOURCE_EXHAUSTED");
}

TEST_CASE("Scenario 64: a generation that is over answers ABORTED, to waiting and to late calls") {
  StoreFixture host;
  host.Get(1, 3);
  host.Put(2, 4, "x");
  Directive closing = host.MakeDirective();
  closing.installed = First();
  closing.closed = GenerationNumber{1};
  const std::string said = host.Feed(agent_event::DirectiveCame{closing});
  CHECK_THAT(said, Catch::Contains("answer 3 of 7.1: ABORTED") &&
                       Catch::Contains("answer 4 of 7.2: ABORTED"));
  CHECK(host.Put(1, 5, "late") == "answer 5 of 7.1: ABORTED");
  CHECK(host.Get(1, 6) == "answer 6 of 7.1: ABORTED");
  host.report = host.core.MakeReport(host.now);
  CHECK(host.report.puts.empty());
  CHECK(host.report.wanted.empty());
}

TEST_CASE("Only generations that a worker is in are spoken of") {
  StoreFixture host;
  CHECK(host.Feed(agent_event::GetCame{Worker(1), 3, {{ServerIncarnation{1}, {7}, 0}, "id"}}) ==
        "answer 3 of 7.1: ABORTED");
}

}  // namespace
}  // namespace elastic::internal::agent_test
