#include <cstdio>

#include "tests/sim/plants.h"

namespace elastic::internal::sim {

namespace {
bool Refuse() {
  std::fprintf(stderr, "this build has no planted mistakes: use elastic_sim_planted\n");
  return false;
}
}  // namespace

bool Plant(const std::string&) { return Refuse(); }
bool FindAllPlanted(const Options&) { return Refuse(); }

}  // namespace elastic::internal::sim
