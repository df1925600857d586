#include "rendezvous/base/time.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace elastic::internal {

namespace {

constexpr double kMaxSeconds = 1e9;

double UnitSeconds(std::string_view unit) {
  if (unit.empty() || unit == "s") {
    return 1.0;
  }
  if (unit == "ms") {
    return 1e-3;
  }
  if (unit == "us") {
    return 1e-6;
  }
  if (unit == "m") {
    return 60.0;
  }
  if (unit == "h") {
    return 3600.0;
  }
  return 0.0;
}

// Three digits, and never an exponent: 999.9 becomes 1000, not 1e+03.
std::string Number(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, std::fabs(value) >= 999.5 ? "%.0f%s" : "%.3g%s", value, unit);
  return text;
}

}  // namespace

StatusOr<Duration> ParseDuration(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  const double unit = parsed.ec == std::errc()
                          ? UnitSeconds({parsed.ptr, static_cast<size_t>(end - parsed.ptr)})
                          : 0.0;
  const double seconds = value * unit;
  if (unit == 0.0 || !std::isfinite(seconds) || seconds < 0 || seconds > kMaxSeconds) {
    return InvalidArgumentError(
        "want a duration such as 300ms, 3s, 10m or a number of seconds, got '" + std::string(text) +
        "'");
  }
  return Duration(std::llround(seconds * 1e9));
}

int PollMilliseconds(Duration left) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(milliseconds, 0, 3'600'000));
}

std::string FormatDuration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  const double size = std::fabs(seconds);
  if (size >= 1000) {
    char text[64];
    std::snprintf(text, sizeof text, "%.0fs", seconds);
    return text;
  }
  if (size >= 1 || size == 0) {
    return Number(seconds, "s");
  }
  return size >= 1e-3 ? Number(seconds * 1e3, "ms") : Number(seconds * 1e6, "us");
}

}  // namespace elastic::internal
