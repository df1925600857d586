#include "launcher/start/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

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

void AwaitEnd(const OutputRelay& relay) {
  pollfd polled{relay.finished_fd(), POLLIN, 0};
  REQUIRE(poll(&polled, 1, 20'000) == 1);
}

TEST_CASE("LinesOfSeveralStreamsArriveWholeHoweverTheyAreCut") {
  TestPipe output, errors, one, two;
  {
    OutputRelay relay(output.write.get(), errors.write.get());
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
    OutputRelay relay(output.write.get(), errors.write.get());
    relay.AddSource(std::move(source.read), Target::kErrors);
    source.Put("from a worker\n");
    source.write.Reset();
    relay.Say("from the launcher");
    relay.Close(20s);
    AwaitEnd(relay);
  }
  CHECK(output.ReadAll().empty());
  CHECK_THAT(errors.ReadAll(),
             Catch::Contains("from a worker\n") && Catch::Contains("from the launcher\n"));
}

TEST_CASE("SayNeverWaitsForASlowReaderAndNothingIsLost") {
  TestPipe output, errors, source;
  constexpr int kLines = 4000;  // more than both pipes hold
  const std::string line(100, 'x');
  std::string all;
  {
    OutputRelay relay(output.write.get(), errors.write.get());
    for (int i = 0; i < kLines; ++i) {
      relay.Say(line);  // would hang here if it wrote itself: nobody reads yet
    }
    std::thread reader([&] {
      char bytes[4096];
      while (all.size() < kLines * (line.size() + 1)) {
        const ssize_t count = ::read(errors.read.get(), bytes, sizeof bytes);
        if (count <= 0) {
          break;
        }
        all.append(bytes, static_cast<size_t>(count));
      }
    });
    relay.Close(20s);
    AwaitEnd(relay);
    reader.join();
  }
  CHECK(all.size() == kLines * (line.size() + 1));
}

TEST_CASE("AReaderThatWentAwayIsToldOnceAndTheRelayGoesOn") {
  signal(SIGPIPE, SIG_IGN);
  TestPipe output, errors, source;
  output.read.Reset();
  {
    OutputRelay relay(output.write.get(), errors.write.get());
    relay.AddSource(std::move(source.read), Target::kOutput);
    source.Put("a\nb\n");
    source.write.Reset();
    relay.Close(20s);
    AwaitEnd(relay);
  }
  const std::string told = errors.ReadAll();
  CHECK_THAT(told, Catch::Contains("standard output is closed"));
  CHECK(std::count(told.begin(), told.end(), '\n') == 1);
}

TEST_CASE("AStreamThatIsHeldOpenDoesNotHoldUpTheEnd") {
  TestPipe output, errors, source;
  {
    OutputRelay relay(output.write.get(), errors.write.get());
    relay.AddSource(std::move(source.read), Target::kOutput);
    source.Put("whole\npart");
    relay.Close(200ms);
    AwaitEnd(relay);
  }
  CHECK(output.ReadAll() == "whole\npart\n");
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
