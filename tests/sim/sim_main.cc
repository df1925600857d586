// elastic_sim: runs seeds N, N+1, ...; prints what was covered, and the seed of each failure.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/sim/plants.h"
#include "tests/sim/sim.h"

namespace {

using namespace elastic::internal::sim;
using std::uint64_t;

// What each pair of a fault and a stage must come to with --coverage.
constexpr int kPairsMin = 20;

struct Arguments {
  Options options;
  uint64_t seeds = 1;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  bool twice = false, coverage = false, plants = false;
  std::string plant;
};

constexpr const char* kUsage =
    "elastic_sim [--seed N] [--seeds COUNT] [--faults N] [--threads N] [--twice] [--coverage] "
    "[--verbose]\nelastic_sim_planted: the same, and --plant NAME | --plants\n";

bool Parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    const auto value = [&] { return std::strtoull(argv[++i], nullptr, 10); };
    if (flag == "--verbose") {
      arguments.options.verbose = true;
      arguments.threads = 1;
    } else if (flag == "--twice") {
      arguments.twice = true;
    } else if (flag == "--coverage") {
      arguments.coverage = true;
    } else if (flag == "--plants") {
      arguments.plants = true;
    } else if (has_value && flag == "--plant") {
      arguments.plant = argv[++i];
    } else if (has_value && flag == "--seed") {
      arguments.options.seed = value();
    } else if (has_value && flag == "--seeds") {
      arguments.seeds = value();
    } else if (has_value && flag == "--faults") {
      arguments.options.faults = static_cast<int>(value());
    } else if (has_value && flag == "--threads") {
      arguments.threads = std::max(1u, static_cast<unsigned>(value()));
    } else {
      std::fprintf(stderr, "unknown argument '%s'; want\n%s", flag.c_str(), kUsage);
      return false;
    }
  }
  return true;
}

// What a set of runs must have seen to prove anything.
constexpr const char* kMustCover[] = {"successor",
                                      "prepared",
                                      "drain prepared",
                                      "entered unseen",
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
                                      "agent ends for want of its guardian",
                                      "offered again",
                                      "server forgets"};

struct Totals {
  std::map<std::string, int> counts;
  Coverage coverage{};
  uint64_t events = 0, events_min = UINT64_MAX, failed = 0;
};

void Add(const Result& result, uint64_t seed, Totals& totals) {
  totals.events += result.events;
  totals.events_min = std::min(totals.events_min, result.events);
  for (const auto& [what, count] : result.counts) {
    totals.counts[what] += count;
  }
  for (size_t fault = 0; fault < kFaults; ++fault) {
    for (size_t stage = 0; stage < kStages; ++stage) {
      totals.coverage[fault][stage] += result.coverage[fault][stage];
    }
  }
  for (const std::string& violation : result.violations) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.c_str());
  }
  totals.failed += result.violations.empty() ? 0 : 1;
}

Result RunSeed(const Arguments& arguments, uint64_t seed) {
  Options options = arguments.options;
  options.seed = seed;
  Result result = RunOnce(options);
  if (arguments.twice && RunOnce(options).trace != result.trace) {
    result.violations.push_back("G13 two runs of this seed differ");
  }
  return result;
}

Totals RunAll(const Arguments& arguments) {
  std::vector<Result> results(arguments.seeds);
  std::atomic<uint64_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < arguments.threads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t at = next++; at < arguments.seeds; at = next++) {
        results[at] = RunSeed(arguments, arguments.options.seed + at);
      }
    });
  }
  threads.clear();  // joins
  Totals totals;
  for (uint64_t at = 0; at < arguments.seeds; ++at) {
    Add(results[at], arguments.options.seed + at, totals);
  }
  return totals;
}

// Rows are faults, columns what the protocol stood at; `-` where they never meet.
bool PrintCoverage(const Coverage& coverage, bool wanted) {
  bool covered = true;
  std::printf("%-15s", "fault met");
  for (size_t stage = 0; stage < kStages; ++stage) {
    std::printf("%11s", NameOf(static_cast<Stage>(stage)));
  }
  std::printf("\n");
  for (size_t fault = 0; fault < kFaults; ++fault) {
    std::printf("%-15s", NameOf(static_cast<Fault>(fault)));
    for (size_t stage = 0; stage < kStages; ++stage) {
      const int count = coverage[fault][stage];
      if (NeverMeets(static_cast<Fault>(fault), static_cast<Stage>(stage)) != nullptr) {
        std::printf("%11s", "-");
        continue;
      }
      const bool few = wanted && count < kPairsMin;
      covered = covered && !few;
      std::printf("%10d%s", count, few ? "!" : " ");
    }
    std::printf("\n");
  }
  if (!covered) {
    std::printf("pairs with ! occurred less than %d times\n", kPairsMin);
  }
  return covered;
}

bool Report(const Arguments& arguments, const Totals& totals) {
  const uint64_t first = arguments.options.seed;
  for (const auto& [what, count] : totals.counts) {
    std::printf("  %-48s %d\n", what.c_str(), count);
  }
  bool covered = PrintCoverage(totals.coverage, arguments.coverage);
  for (const char* what : kMustCover) {
    if (arguments.coverage && !totals.counts.contains(what)) {
      std::printf("not covered: %s\n", what);
      covered = false;
    }
  }
  std::printf("seeds %llu to %llu: %llu failed, %llu events, at least %llu a seed\n",
              static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + arguments.seeds - 1),
              static_cast<unsigned long long>(totals.failed),
              static_cast<unsigned long long>(totals.events),
              static_cast<unsigned long long>(totals.events_min));
  return totals.failed == 0 && covered;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments) || (!arguments.plant.empty() && !Plant(arguments.plant))) {
    return 2;
  }
  if (arguments.plants) {
    return FindAllPlanted(arguments.options) ? 0 : 1;
  }
  return Report(arguments, RunAll(arguments)) ? 0 : 1;
}
