// Each mistake is looked for in a process of its own, since a CHECK of a core may find it first.
#include "tests/sim/plants.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <map>

#include "rendezvous/base/check.h"
#include "rendezvous/base/planted.h"

namespace elastic::internal {

PlantedBug planted_bug = PlantedBug::kNone;

namespace sim {

namespace {

constexpr uint64_t kSeedsMax = 4000;  // for each mistake
constexpr int kProcesses = 2;

struct Name {
  PlantedBug bug;
  const char* name;
};
constexpr Name kNames[] = {
    {PlantedBug::kStaleGenerationAccepted, "stale-generation-accepted"},
    {PlantedBug::kOldIncarnationAnswers, "old-incarnation-answers"},
    {PlantedBug::kOrphanLimitIgnored, "orphan-limit-ignored"},
    {PlantedBug::kInstalledBeforeReady, "installed-before-ready"},
    {PlantedBug::kUnsyncedHolder, "unsynced-holder"},
    {PlantedBug::kOlderVersionWins, "older-version-wins"},
    {PlantedBug::kCommitAfterFence, "commit-after-fence"},
    {PlantedBug::kRestartFromZero, "restart-from-zero"},
    {PlantedBug::kFinishRecordedEarly, "finish-recorded-early"},
    {PlantedBug::kOnlyKeptAnswer, "v5-only-kept-answer"},
    {PlantedBug::kEnteredUnseen, "v1-entered-unseen"},
    {PlantedBug::kDifferenceAgreed, "v7-difference-agreed"},
    {PlantedBug::kMarkWithoutClosed, "v9-mark-without-closed"},
};

// What a process that looks for a mistake leaves to its parent.
struct Found {
  uint64_t seed = 0;  // the one that runs, or that found it
  bool found = false;
  char text[200] = {};
};

void Look(const Options& options, PlantedBug bug, Found& found) {
  planted_bug = bug;
  for (uint64_t seed = options.seed; seed < options.seed + kSeedsMax; ++seed) {
    found.seed = seed;
    Options one = options;
    one.seed = seed;
    const Result result = RunOnce(one);
    if (!result.violations.empty()) {
      found.found = true;
      std::snprintf(found.text, sizeof found.text, "%s", result.violations.front().c_str());
      return;
    }
  }
}

bool Judge(const Options& options, const Name& name, Found& found, int status) {
  const bool aborted = !WIFEXITED(status);
  if (aborted) {
    std::snprintf(found.text, sizeof found.text, "a core's CHECK failed");
  }
  if (!aborted && !found.found) {
    std::printf("NOT FOUND %s: %llu seeds hold all invariants\n", name.name,
                static_cast<unsigned long long>(kSeedsMax));
    return false;
  }
  Options one = options;
  one.seed = found.seed;
  const Result clean = RunOnce(one);
  std::printf("%s %s: seed %llu: %s\n", clean.violations.empty() ? "found" : "NOT CLEAN", name.name,
              static_cast<unsigned long long>(found.seed), found.text);
  if (!clean.violations.empty()) {
    std::printf("  without it: %s\n", clean.violations.front().c_str());
  }
  return clean.violations.empty();
}

}  // namespace

bool Plant(const std::string& wanted) {
  for (const auto& [bug, name] : kNames) {
    if (wanted == name) {
      planted_bug = bug;
      return true;
    }
  }
  std::fprintf(stderr, "no planted mistake '%s'; there are:\n", wanted.c_str());
  for (const auto& [bug, name] : kNames) {
    std::fprintf(stderr, "  %s\n", name);
  }
  return false;
}

bool FindAllPlanted(const Options& options) {
  void* const memory = mmap(nullptr, sizeof(Found) * std::size(kNames), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ELASTIC_CHECK(memory != MAP_FAILED);
  auto* const found = static_cast<Found*>(memory);
  std::map<pid_t, size_t> running;
  bool all = true;
  size_t next = 0;
  while (next < std::size(kNames) || !running.empty()) {
    if (next < std::size(kNames) && std::ssize(running) < kProcesses) {
      std::fflush(stdout);
      const pid_t pid = fork();
      ELASTIC_CHECK(pid >= 0);
      if (pid == 0) {
        Look(options, kNames[next].bug, found[next]);
        _exit(0);
      }
      running[pid] = next++;
      continue;
    }
    int status = 0;
    const pid_t pid = wait(&status);
    ELASTIC_CHECK(pid > 0);
    const size_t at = running[pid];
    running.erase(pid);
    all = Judge(options, kNames[at], found[at], status) && all;
  }
  munmap(memory, sizeof(Found) * std::size(kNames));
  return all;
}

}  // namespace sim
}  // namespace elastic::internal
