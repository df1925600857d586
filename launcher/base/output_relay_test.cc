#include "launcher/base/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>

namespace elastic::internal {
namespace {

using namespace std::chrono_literals;
using Target = OutputRelay::Target;

struct TestPipe {
  TestPipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  void Put(std::string_view text) const {
    REQUIRE(::write(write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string ReadAll() {
    write.Reset();
    std::string all;
    char bytes[4096];
    for (ssize_t count = 0; (count = ::read(read.get(), bytes, sizeof bytes)) > 0;) {
      all.append(bytes, static_cast<size_t>(count));
    }
    return all;
  }
  UniqueFd read, write;
};

OutputRelay::Options OptionsFor(const TestPipe& output, const TestPipe& errors) {
  return {.output_fd = output.write.get(), .errors_fd = errors.write.get(), .name = "program"};
}

void AwaitEnd(const OutputRelay& relay) {
  pollfd polled{relay.finished_fd(), POLLIN, 0};
  REQUIRE(poll(&polled, 1, 20'000) == 1);
}

TEST_CASE("LinesOfSeveralStreamsArriveWholeHoweverTheyAreCut") {
  TestPipe output, errors, one, two;
  {
    OutputRelay relay(OptionsFor(output, errors));
    relay.AddSource(std::move(one.read), Target::kOutput);
    relay.AddSource(std::move(two.read), Target::kOutput);
    for (int i = 0; i < 200; ++i) {
      one.Put("first ");
      two.Put("second ");
      one.Put("stream\n");
      two.Put("stream\n");
    }
    one.write.Reset();
    two.Put("without newline");
    two.write.Reset();
    relay.Close(20s);
    AwaitEnd(relay);
  }
  const std::string all = output.ReadAll();
  size_t first = 0, second = 0, last = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const std::string line = all.substr(begin, end - begin);
    first += line == "first stream";
    second += line == "second stream";
    last += line == "without newline";
    begin = end + 1;
  }
  CHECK(first == 200);
  CHECK(second == 200);
  CHECK(last == 1);
  CHECK(all.size() == 200 * (13 + 14) + 16);
  CHECK(errors.ReadAll().empty());
}

TEST_CASE("ErrorsAndTheLaunchersOwnLinesGoToTheErrorOutput") {
  TestPipe output, errors, source;
  {
    OutputRelay relay(OptionsFor(output, errors));
    relay.AddSource(std::move(source.read), Target::kErrors);
    source.Put("from a worker\n");
    source.write.Reset();
    relay.Say(Severity::kWarning, "from the launcher");
    relay.Close(20s);
    AwaitEnd(relay);
  }
  CHECK(output.ReadAll().empty());
  CHECK_THAT(errors.ReadAll(), Catch::Contains("from a worker\n") &&
                                   Catch::Contains(" program: warning: from the launcher\n"));
}

TEST_CASE("SayNeverWaitsForASlowReaderAndNothingIsLost") {
  TestPipe output, errors, source;
  constexpr int kLines = 4000;  // more than both pipes hold
  int lines = 0;
  {
    OutputRelay relay(OptionsFor(output, errors));
    for (int i = 0; i < kLines; ++i) {
      relay.Say(Severity::kInfo,
                std::string(100, 'x'));  // would hang if it wrote: nobody reads yet
    }
    std::thread reader([&] {
      char bytes[4096];
      ssize_t count = 1;
      while (lines < kLines && (count = ::read(errors.read.get(), bytes, sizeof bytes)) > 0) {
        lines += static_cast<int>(std::count(bytes, bytes + count, '\n'));
      }
    });
    relay.Close(20s);
    AwaitEnd(relay);
    reader.join();
  }
  CHECK(lines == kLines);
}

TEST_CASE("AReaderThatWentAwayIsToldOnceAndTheRelayGoesOn") {
  signal(SIGPIPE, SIG_IGN);
  TestPipe output, errors, source;
  output.read.Reset();
  {
    OutputRelay relay(OptionsFor(output, errors));
    relay.AddSource(std::move(source.read), Target::kOutput);
    source.Put("a\nb\n");
    source.write.Reset();
    relay.Close(20s);
    AwaitEnd(relay);
  }
  const std::string told = errors.ReadAll();
  CHECK_THAT(told, Catch::Contains("program: warning: standard output cannot be written") &&
                       Catch::Contains("Broken pipe"));
  CHECK(std::count(told.begin(), told.end(), '\n') == 1);
}

TEST_CASE("AStreamThatIsHeldOpenDoesNotHoldUpTheEnd") {
  TestPipe output, errors, source;
  {
    OutputRelay relay(OptionsFor(output, errors));
    relay.AddSource(std::move(source.read), Target::kOutput);
    source.Put("whole\npart");
    relay.Close(200ms);
    AwaitEnd(relay);
  }
  CHECK(output.ReadAll() == "whole\npart\n");
}

TEST_CASE("EachLineGetsThePrefixThatHoldsWhenItComes") {
  TestPipe output, errors, source;
  std::atomic<int> rank = 1;
  {
    OutputRelay relay(OptionsFor(output, errors));
    relay.AddSource(std::move(source.read), Target::kOutput, [&] { return StrCat(rank, ':'); });
    source.Put("one\ntwo\n");
    char seen[12];
    size_t count = 0;
    while (count < sizeof seen) {
      count += static_cast<size_t>(::read(output.read.get(), seen + count, sizeof seen - count));
    }
    CHECK(std::string(seen, sizeof seen) == "1:one\n1:two\n");
    rank = 2;
    source.Put("three");
    source.write.Reset();
    relay.Close(20s);
    AwaitEnd(relay);
  }
  CHECK(output.ReadAll() == "2:three\n");
}

// Fills the pipe so that nothing can be written until somebody reads.
size_t Stuff(const TestPipe& pipe) {
  fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  const std::string bytes(4096, '.');
  size_t total = 0;
  for (ssize_t count = 0; (count = ::write(pipe.write.get(), bytes.data(), bytes.size())) > 0;) {
    total += static_cast<size_t>(count);
  }
  return total;
}

TEST_CASE("WhatWasSaidAndWhatHasComeIsWrittenWhenTheEndCannotWaitForTheStreams") {
  TestPipe both, source;
  const size_t stuffed = Stuff(both);
  source.Put("whole\npart");
  {
    OutputRelay relay({.output_fd = both.write.get(),
                       .errors_fd = both.write.get(),
                       .name = "program",
                       .write_limit = 20s});
    relay.AddSource(std::move(source.read), Target::kOutput, [] { return std::string("[0]"); });
    relay.Say(Severity::kError, "the last word");
    relay.Close(0s);
    std::string dots(stuffed, ' ');
    for (size_t count = 0; count < stuffed;) {
      count += static_cast<size_t>(::read(both.read.get(), dots.data(), stuffed - count));
    }
    AwaitEnd(relay);
  }
  CHECK_THAT(both.ReadAll(), Catch::Contains("error: the last word\n") &&
                                 Catch::Contains("[0]whole\n") && Catch::Contains("[0]part\n"));
}

TEST_CASE("AReaderThatDoesNotReadEndsWithTheWriteLimit") {
  TestPipe both;
  Stuff(both);
  OutputRelay relay({.output_fd = both.write.get(),
                     .errors_fd = both.write.get(),
                     .name = "program",
                     .write_limit = 100ms});
  relay.Say(Severity::kInfo, "nobody reads this");
  relay.Close(0s);
  AwaitEnd(relay);
}

TEST_CASE("AnEndlessLineIsPassedOnInPieces") {
  LineSplitter lines(8);
  CHECK(lines.Add("abc").empty());
  CHECK(lines.Add("defgh") == "abcdefgh\n");
  CHECK(lines.Add("i\nj") == "i\n");
  CHECK(lines.Finish() == "j\n");
  CHECK(lines.Finish().empty());
}

}  // namespace
}  // namespace elastic::internal
