#include "launcher/cli/console.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

// All agents have ended by then; only a process that escaped them can still hold their pipes.
constexpr Duration kLastLinesLimit = std::chrono::seconds(1);

std::string_view Mark(Severity severity) {
  switch (severity) {
    case Severity::kWarning: return "warning: ";
    case Severity::kError: return "error: ";
    case Severity::kDebug:
    case Severity::kInfo: break;
  }
  return "";
}

}  // namespace

Console::Console(Severity threshold) : threshold_(threshold), relay_(STDOUT_FILENO, STDERR_FILENO) {
  SetLogSink([this](Severity severity, std::string_view line) { Say(severity, line); }, threshold);
}

Console::~Console() { SetLogSink(nullptr, Severity::kError); }

void Console::Say(Severity severity, std::string_view text) {
  if (severity >= threshold_) {
    relay_.Say(StrCat(WallTimeText(), " elastic-run: ", Mark(severity), text));
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
