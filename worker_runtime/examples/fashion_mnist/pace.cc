#include "worker_runtime/examples/fashion_mnist/pace.h"

#include <sys/timerfd.h>
#include <unistd.h>

namespace fashion {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStopwatchSeconds = 1'000'000'000;  // runs down, never rings

void Set(int timer, int64_t first_ns, int64_t interval_ns) {
  itimerspec times{};
  times.it_value = {first_ns / kSecond, first_ns % kSecond};
  times.it_interval = {interval_ns / kSecond, interval_ns % kSecond};
  timerfd_settime(timer, 0, &times, nullptr);
}

}  // namespace

Pace::Pace(int64_t step_ns)
    : step_ns_(step_ns),
      step_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)),
      report_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  Set(step_timer_, step_ns, step_ns);
  Set(report_timer_, kStopwatchSeconds * kSecond / 1000, 0);
}

Pace::~Pace() {
  close(step_timer_);
  close(report_timer_);
}

void Pace::WaitForStepEnd() const {
  if (step_ns_ == 0) {
    return;
  }
  uint64_t steps = 0;
  (void)!read(step_timer_, &steps, sizeof steps);
}

double Pace::SecondsSinceReport() {
  itimerspec left{};
  timerfd_gettime(report_timer_, &left);
  const int64_t full_ns = kStopwatchSeconds * kSecond / 1000;
  const int64_t left_ns = left.it_value.tv_sec * kSecond + left.it_value.tv_nsec;
  Set(report_timer_, full_ns, 0);
  return static_cast<double>(full_ns - left_ns) / 1e9;
}

}  // namespace fashion
