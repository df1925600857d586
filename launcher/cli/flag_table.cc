#include "launcher/cli/flag_table.h"

#include <algorithm>
#include <vector>

namespace elastic::internal {

namespace {

using Options = RunOptions;

constexpr Flag kFlags[] = {
    {"--num-proc", "-np", "N", FlagGroup::kWorkers, &Options::np, "required",
     "workers that the job begins with; lost ones are replaced"},
    {"--min-np", "", "M", FlagGroup::kWorkers, &Options::min_np, "default: same as -np",
     "fewest workers that may train; with fewer left the job waits"},
    {"--max-np", "", "N", FlagGroup::kWorkers, &Options::max_np, "default: same as -np",
     "most workers that may train; free slots are filled up to it"},
    {"--hosts", "-H", "HOST:SLOTS,...", FlagGroup::kHosts, &Options::hosts,
     "default: localhost with --max-np slots",
     "hosts and how many workers each can take; this version takes loopback addresses, each one a "
     "host of its own"},
    {"--rendezvous", "", "ADDRESS", FlagGroup::kHosts, &Options::rendezvous,
     "default: a server inside elastic-run",
     "HOST:PORT or unix:PATH of a standing elastic-rendezvous that is to run the job; it may be "
     "restarted while the job trains"},
    {"--no-progress-limit", "", "N", FlagGroup::kFailures, &Options::no_progress_limit, "",
     "the job ends when this many generations in a row fail without a newly committed step; 0: it "
     "never ends for that"},
    {"--allow-restart-from-zero", "", "", FlagGroup::kFailures, &Options::allow_restart_from_zero,
     "",
     "when no copy of the committed state is left, begin anew from the programs' initial state; "
     "without it the job then ends with exit code 5"},
    {"--start-timeout", "", "TIME", FlagGroup::kTimes, &Options::start_timeout, "",
     "how long to wait for -np workers to be ready; then the job begins with --min-np or more, or "
     "ends"},
    {"--heartbeat-timeout", "", "TIME", FlagGroup::kTimes, &Options::heartbeat_timeout, "",
     "a host silent for this long is lost"},
    {"--elastic-timeout", "", "TIME", FlagGroup::kTimes, &Options::elastic_timeout, "",
     "how long a job that has begun waits with too few workers before it ends"},
    {"--entry-timeout", "", "TIME", FlagGroup::kTimes, &Options::entry_timeout, "",
     "a worker that takes longer to enter a new generation is removed"},
    {"--orphan-limit", "", "TIME", FlagGroup::kTimes, &Options::orphan_limit,
     "default: 30s, 10m with --rendezvous",
     "workers whose agent has reached no server for this long are killed"},
    {"--grace-period", "", "TIME", FlagGroup::kTimes, &Options::grace_period, "",
     "time between SIGTERM and SIGKILL when workers are stopped"},
    {"--log-level", "", "LEVEL", FlagGroup::kOutput, &Options::log_level, "",
     "debug, info, warning or error"},
    {"--status-address", "", "ADDRESS", FlagGroup::kOutput, &Options::status_address, "",
     "HOST:PORT or unix:PATH where elastic-ctl and other gRPC clients read the status; port 0 "
     "takes "
     "a free one"},
    {"--help", "-h", "", FlagGroup::kOutput, &Options::help, "", "print this text"},
    {"--version", "-V", "", FlagGroup::kOutput, &Options::version, "", "print the version"},
};

// Levenshtein distance; the words are short.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Flag> FlagTable() { return kFlags; }

const Flag* FindFlag(std::string_view word) {
  if (word.empty()) {
    return nullptr;  // an empty word would match the flags without an alias
  }
  const auto found = std::ranges::find_if(
      kFlags, [word](const Flag& flag) { return flag.name == word || flag.alias == word; });
  return found == std::end(kFlags) ? nullptr : found;
}

bool TakesValue(const Flag& flag) {
  return !std::holds_alternative<bool RunOptions::*>(flag.target);
}

std::string_view NearestFlag(std::string_view word) {
  std::string_view nearest;
  // A third of the word may be wrong, but at least two letters (`-n` for `-np` is one).
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  for (const Flag& flag : kFlags) {
    for (const std::string_view name : {flag.name, flag.alias}) {
      // A beginning of a name is meant as that name however much is missing.
      const bool begins = word.size() > 3 && name.starts_with(word);
      const size_t distance = begins ? 0 : EditDistance(word, name);
      if (!name.empty() && distance < best) {
        best = distance;
        nearest = name;
      }
    }
  }
  return nearest;
}

std::string FlagName(const Flag& flag) {
  return flag.alias.empty() ? std::string(flag.name)
                            : std::string(flag.alias) + "/" + std::string(flag.name);
}

}  // namespace elastic::internal
