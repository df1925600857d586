#include "tests/fuzz/fuzz_input.h"

#include <cstdio>
#include <cstdlib>

namespace elastic::internal {

void Broken(std::string_view what) {
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace elastic::internal
