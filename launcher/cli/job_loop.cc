#include "launcher/cli/job_loop.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

using namespace std::chrono_literals;

// The job is over and its workers are gone: an agent needs this long only if something hangs.
constexpr Duration kAgentEndLimit = 2s;

std::optional<Instant> Earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) {
    return a ? a : b;
  }
  return std::min(*a, *b);
}

std::string SignalText(int number) {
  return number == SIGINT ? "Ctrl-C (SIGINT)" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace

JobLoop::JobLoop(Options options, JobSignals& signals, JobEnd& end, Console& console)
    : signals_(signals),
      end_(end),
      console_(console),
      grace_period_(options.grace_period),
      stop_margin_(options.stop_margin),
      kill_limit_(options.kill_limit),
      post_(std::move(options.post)),
      agents_({.program = std::move(options.agent_program), .agents = std::move(options.agents)},
              {.trouble =
                   // Told by the server's note.
               [this](const std::string& host, const std::string& message) {
                 post_(AgentStartFailed{host, message});
               }},
              console.relay()) {}

JobEnd::Result JobLoop::Run() {
  while (!end_.Get()) {
    agents_.StartDue(Now());
    Turn(Earlier(agents_.NextDeadline(), stop_limit_), true);
    const Instant now = Now();
    if (stop_limit_ && now >= *stop_limit_) {
      StopFurther(now, "the stop took longer than it may", stop_exit_code_);
    }
  }
  EndAgents();
  return *end_.Get();
}

void JobLoop::Turn(std::optional<Instant> until, bool await_end) {
  std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}};
  if (await_end) {
    polled.push_back({end_.fd(), POLLIN, 0});
  }
  agents_.AddPollEntries(polled);
  poll(polled.data(), polled.size(), until ? PollMilliseconds(*until - Now()) : -1);
  const Instant now = Now();
  HandleSignals(now);
  agents_.HandleEvents(now);
}

void JobLoop::HandleSignals(Instant now) {
  while (const auto number = signals_.Take()) {
    if (*number == SIGCHLD) {
      continue;  // the supervisor looks after every wait
    }
    if (*number == SIGTSTP) {
      console_.Say(Severity::kWarning,
                   "Ctrl-Z (SIGTSTP) is ignored: a stopped launcher would be a lost one");
      continue;
    }
    const int exit_code = kExitBySignal + (*number == SIGINT ? SIGINT : SIGTERM);
    StopFurther(now, SignalText(*number), exit_code);
  }
}

void JobLoop::StopFurther(Instant now, const std::string& why, int exit_code) {
  if (stop_ == Stop::kNone) {
    stop_ = Stop::kGraceful;
    stop_exit_code_ = exit_code;  // of the first signal, whatever follows
    stop_limit_ = now + grace_period_ + stop_margin_;
    agents_.StopRestarting();
    console_.Say(Severity::kInfo, why + ": workers get SIGTERM and " +
                                      FormatDuration(grace_period_) +
                                      " (--grace-period) to end; again ends them at once");
    post_(StopRequested{StopMode::kGraceful, why, stop_exit_code_});
    return;
  }
  if (stop_ == Stop::kGraceful) {
    stop_ = Stop::kImmediate;
    stop_limit_ = now + stop_margin_;
    console_.Say(Severity::kInfo, why + ": workers are killed");
    post_(StopRequested{StopMode::kImmediate, why, stop_exit_code_});
    return;
  }
  // The server or an agent does not answer: killing the agents makes their guardians kill.
  stop_ = Stop::kGivenUp;
  stop_limit_.reset();
  agents_.Kill();
  end_.Set(stop_exit_code_, why + ": the job's agents were killed");
}

void JobLoop::EndAgents() {
  agents_.StopRestarting();
  agents_.CloseInputs();
  stop_limit_.reset();
  const Duration stop_time = end_.Get()->workers_run ? grace_period_ : Duration::zero();
  if (!AwaitAgents(Now() + stop_time + kAgentEndLimit)) {
    const int count = agents_.running();
    console_.Say(Severity::kWarning, StrCat(count, count == 1 ? " agent" : " agents",
                                            " did not end by themselves: killed"));
    agents_.Kill();
    if (!AwaitAgents(Now() + kill_limit_)) {
      for (const std::string& agent : agents_.LeaveBehind()) {
        console_.Say(Severity::kError,
                     StrCat(agent, ": SIGKILL did not end it within ", FormatDuration(kill_limit_),
                            ", left behind; it waits in the kernel, or a debugger holds it"));
      }
      return;
    }
  }
  // The guardians of lost agents may still be killing what those left.
  const Instant orphans_limit = Now() + kAgentEndLimit;
  while (agents_.HasOrphans() && Now() < orphans_limit) {
    Turn(orphans_limit, false);
  }
}

bool JobLoop::AwaitAgents(Instant limit) {
  while (agents_.running() > 0 && Now() < limit) {
    Turn(limit, false);
  }
  return agents_.running() == 0;
}

}  // namespace elastic::internal
