#pragma once

#include <string>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

// The mistakes of rendezvous/base/planted.h. Only elastic_sim_planted is built with them; in
// elastic_sim both calls print so and return false.

// Everything that follows runs with that mistake in the cores.
bool Plant(const std::string& name);

// Looks for each of them with seeds from options.seed on, and runs the seed that found it once more
// without the mistake. False unless all are found and all those seeds are clean then.
bool FindAllPlanted(const Options& options);

}  // namespace elastic::internal::sim
