#include "launcher/cli/console.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

namespace elastic::internal {

namespace {

// All agents have ended by then; only a process that escaped them can still hold their pipes.
constexpr Duration kLastLinesLimit = std::chrono::seconds(1);

}  // namespace

Console::Console(Severity threshold)
    : threshold_(threshold),
      relay_({.output_fd = STDOUT_FILENO, .errors_fd = STDERR_FILENO, .name = "elastic-run"}) {
  SetLogSink([this](Severity severity, std::string_view line) { Say(severity, line); }, threshold);
}

Console::~Console() { SetLogSink(nullptr, Severity::kError); }

void Console::Say(Severity severity, std::string_view text) {
  if (severity >= threshold_) {
    relay_.Say(severity, text);
  }
}

void Console::Finish(JobSignals& signals, int exit_code) {
  relay_.Close(kLastLinesLimit);
  for (;;) {
    pollfd polled[] = {{relay_.finished_fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    poll(polled, 2, -1);
    if (polled[0].revents != 0) {
      return;
    }
    while (const auto signal = signals.Take()) {
      if (*signal != SIGTSTP && *signal != SIGCHLD) {
        _exit(exit_code);  // the reader of our output does not read: nothing else can be done
      }
    }
  }
}

}  // namespace elastic::internal
