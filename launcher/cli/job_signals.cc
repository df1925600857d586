#include "launcher/cli/job_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "rendezvous/base/check.h"

namespace elastic::internal {

namespace {

bool IsIgnored(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

JobSignals::JobSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGTSTP);
  sigaddset(&set, SIGCHLD);
  // A blocked signal reaches a signalfd even if it is ignored, and nohup asks to ignore this one.
  if (!IsIgnored(SIGHUP)) {
    sigaddset(&set, SIGHUP);
  }
  ELASTIC_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  // A closed pipe is an error of write; an ignored SIGCHLD would take the agents' exit statuses.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  fd_.Reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  ELASTIC_CHECK(fd_.valid());
}

std::optional<int> JobSignals::Take() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace elastic::internal
