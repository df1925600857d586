#include "rendezvous/base/real_clock.h"

#include <cstdio>
#include <ctime>

namespace elastic::internal {

Instant Now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return Instant(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
}

std::string WallTimeText() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  tm parts{};
  localtime_r(&time.tv_sec, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03ld", time.tv_nsec / 1'000'000);
  return text;
}

}  // namespace elastic::internal
