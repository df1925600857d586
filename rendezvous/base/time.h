#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/base/status.h"

namespace elastic::internal {

using Duration = std::chrono::nanoseconds;

// The clock of every interval and deadline. It has no now(): pure code gets the time as an
// argument, and only real_clock.cc asks the kernel (CLOCK_BOOTTIME, so that a suspended host has
// aged when it wakes, P23).
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};
using Instant = BootClock::time_point;

// Reads `300ms`, `3s`, `10m`, `1h`, or a bare number of seconds as Horovod does (fractions too).
// Errors: INVALID_ARGUMENT for anything else, negative or out of range.
StatusOr<Duration> ParseDuration(std::string_view text);

// The shortest exact-enough form for people: `3s`, `1.25s`, `12.3ms`, `40us`.
std::string FormatDuration(Duration duration);

inline int64_t ToNanoseconds(Instant instant) { return instant.time_since_epoch().count(); }
inline Instant FromNanoseconds(int64_t value) { return Instant(Duration(value)); }
inline double ToMilliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// For poll and epoll_wait: rounded up, so that the time has passed when they return; at most an
// hour.
int PollMilliseconds(Duration left);

}  // namespace elastic::internal
