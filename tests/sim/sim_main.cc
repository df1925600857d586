// elastic_sim [--seed N] [--seeds COUNT] [--faults N] [--twice] [--coverage] [--verbose]
// Runs seeds N, N+1, ...; prints what was covered, and the seed of each failure.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/sim/sim.h"

namespace {

using elastic::internal::sim::Options;
using elastic::internal::sim::Result;
using elastic::internal::sim::RunOnce;

struct Arguments {
  Options options;
  uint64_t seeds = 1;
  bool twice = false;
  bool coverage = false;
};

bool Parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--verbose") {
      arguments.options.verbose = true;
    } else if (flag == "--twice") {
      arguments.twice = true;
    } else if (flag == "--coverage") {
      arguments.coverage = true;
    } else if (i + 1 < argc && (flag == "--seed" || flag == "--seeds" || flag == "--faults")) {
      const uint64_t value = std::strtoull(argv[++i], nullptr, 10);
      if (flag == "--seed") {
        arguments.options.seed = value;
      } else if (flag == "--seeds") {
        arguments.seeds = value;
      } else {
        arguments.options.faults = static_cast<int>(value);
      }
    } else {
      std::fprintf(stderr,
                   "unknown argument '%s'; want [--seed N] [--seeds COUNT] [--faults N] "
                   "[--twice] [--coverage] [--verbose]\n",
                   flag.c_str());
      return false;
    }
  }
  return true;
}

// What a set of runs must have seen to prove anything.
constexpr const char* kMustCover[] = {"successor",
                                      "prepared",
                                      "boundary passed",
                                      "newcomer entered",
                                      "commit",
                                      "fenced",
                                      "fenced while committing",
                                      "word settled",
                                      "finish recorded",
                                      "run returned",
                                      "state taken",
                                      "copy served",
                                      "accusation",
                                      "exchange lost a race",
                                      "edges stand after a failure",
                                      "edge failed, nobody to blame",
                                      "agreement differs",
                                      "killed by guardian",
                                      "server forgets"};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments)) {
    return 2;
  }
  std::map<std::string, int> counts;
  uint64_t events = 0, failed = 0;
  const uint64_t first = arguments.options.seed;
  for (uint64_t seed = first; seed < first + arguments.seeds; ++seed) {
    Options options = arguments.options;
    options.seed = seed;
    const Result result = RunOnce(options);
    events += result.events;
    for (const auto& [what, count] : result.counts) {
      counts[what] += count;
    }
    for (const std::string& violation : result.violations) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.c_str());
    }
    bool bad = !result.violations.empty();
    if (arguments.twice) {
      const Result again = RunOnce(options);
      if (again.trace != result.trace) {
        std::printf("seed %llu: G13 two runs differ: %016llx and %016llx\n",
                    static_cast<unsigned long long>(seed),
                    static_cast<unsigned long long>(result.trace),
                    static_cast<unsigned long long>(again.trace));
        bad = true;
      }
    }
    failed += bad ? 1 : 0;
  }
  std::printf("seeds %llu to %llu: %llu failed, %llu events\n",
              static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + arguments.seeds - 1),
              static_cast<unsigned long long>(failed), static_cast<unsigned long long>(events));
  for (const auto& [what, count] : counts) {
    std::printf("  %-48s %d\n", what.c_str(), count);
  }
  bool covered = true;
  for (const char* what : kMustCover) {
    if (arguments.coverage && counts[what] == 0) {
      std::printf("not covered: %s\n", what);
      covered = false;
    }
  }
  return failed == 0 && covered ? 0 : 1;
}
