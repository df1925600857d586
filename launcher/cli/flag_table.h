#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "launcher/cli/run_options.h"

namespace elastic::internal {

// The member of RunOptions that a flag writes; its type says how the value is read. A flag of type
// bool takes no value.
using FlagTarget =
    std::variant<bool RunOptions::*, int RunOptions::*, std::optional<int> RunOptions::*,
                 Duration RunOptions::*, std::string RunOptions::*, Severity RunOptions::*>;

enum class FlagGroup { kWorkers, kHosts, kFailures, kTimes, kOutput };

struct Flag {
  std::string_view name;         // `--num-proc`
  std::string_view alias;        // `-np`, or empty
  std::string_view placeholder;  // of the value in --help: `N`
  FlagGroup group;
  FlagTarget target;
  std::string_view default_note;  // where there is no fixed default: `default: same as -np`
  std::string_view help;
};

// Every flag of elastic-run, in the order of --help. Parsing and --help are both made from it, so
// that neither can know a flag that the other doesn't.
std::span<const Flag> FlagTable();

// By name or alias; nullptr if there is none.
const Flag* FindFlag(std::string_view word);
bool TakesValue(const Flag& flag);

// The name closest to a mistyped word, or empty when none is close enough to be meant.
std::string_view NearestFlag(std::string_view word);

// `-np/--num-proc`, for messages.
std::string FlagName(const Flag& flag);

}  // namespace elastic::internal
