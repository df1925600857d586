#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace elastic::internal {

// Whether `address` is HOST:PORT with a port that exists (0 included, which asks for a free one).
// gRPC takes any number and uses its low 16 bits, and for a port left out it takes 443.
inline bool HasTcpPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return false;
  }
  const std::string_view text = address.substr(colon + 1);
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  uint16_t port = 0;
  return digits && std::from_chars(text.data(), text.data() + text.size(), port).ec == std::errc();
}

}  // namespace elastic::internal
