#include "launcher/cli/random_numbers.h"

#include <sys/random.h>

#include <cstdio>

#include "rendezvous/base/check.h"

namespace elastic::internal {

uint64_t RandomNumber() {
  uint64_t value = 0;
  // Up to 256 bytes come whole and without EINTR once the kernel's pool is ready.
  ELASTIC_CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
  return value;
}

std::string RandomHex() {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(RandomNumber()));
  return text;
}

}  // namespace elastic::internal
