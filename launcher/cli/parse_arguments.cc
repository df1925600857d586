#include "launcher/cli/parse_arguments.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "launcher/cli/flag_table.h"
#include "rendezvous/base/severity_names.h"

// CLI11 is not used: of its work only the conversion of values would be left, since it refuses
// one-dash words such as -np, takes an unknown flag as the start of the command, and keeps `--`.

namespace elastic::internal {

namespace {

Status BadValue(const Flag& flag, std::string_view value, std::string_view wanted) {
  return InvalidArgumentError(StrCat(FlagName(flag), " '", value, "': want ", wanted));
}

std::optional<int> WholeNumber(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

Status ReadValue(const Flag& flag, std::string_view text, int& value) {
  const std::optional<int> number = WholeNumber(text);
  if (!number) {
    return BadValue(flag, text, "a whole number, 0 or more");
  }
  value = *number;
  return OkStatus();
}

Status ReadValue(const Flag& flag, std::string_view text, std::optional<int>& value) {
  const std::optional<int> number = WholeNumber(text);
  if (!number) {
    return BadValue(flag, text, StrCat("a whole number of workers from 1 to ", kMembersMax));
  }
  value = number;
  return OkStatus();
}

Status ReadValue(const Flag& flag, std::string_view text, Duration& value) {
  const auto parsed = ParseDuration(text);
  if (!parsed.ok()) {
    return BadValue(flag, text, "a time such as 300ms, 3s or 10m; a bare number is seconds");
  }
  value = *parsed;
  return OkStatus();
}

Status ReadValue(const Flag& flag, std::string_view text, std::string& value) {
  if (text.empty()) {
    return BadValue(flag, text, flag.placeholder);
  }
  value = text;
  return OkStatus();
}

Status ReadValue(const Flag& flag, std::string_view text, Severity& value) {
  const auto level = ParseSeverity(text);
  if (!level) {
    return BadValue(flag, text, flag.help);
  }
  value = *level;
  return OkStatus();
}

Status ReadValue(const Flag&, std::string_view, bool& value) {
  value = true;
  return OkStatus();
}

Status UnknownFlag(std::string_view word) {
  const std::string_view nearest = NearestFlag(word);
  return InvalidArgumentError(
      StrCat("unknown flag '", word, "'",
             nearest.empty() ? std::string() : StrCat(", did you mean ", nearest, "?"),
             " (elastic-run --help lists all; flags of your program come after its name)"));
}

// One flag with its value, if it has one, and how many words both took.
struct Taken {
  const Flag* flag = nullptr;
  std::string_view value;
  size_t words = 1;
};

StatusOr<Taken> TakeFlag(std::span<const std::string> words) {
  const std::string_view word = words.front();
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  Taken taken;
  taken.flag = FindFlag(name);
  if (taken.flag == nullptr) {
    return UnknownFlag(name);
  }
  if (!TakesValue(*taken.flag)) {
    if (equals != std::string_view::npos) {
      return InvalidArgumentError(
          StrCat("'", word, "': ", FlagName(*taken.flag), " takes no value"));
    }
    return taken;
  }
  if (equals != std::string_view::npos) {
    taken.value = word.substr(equals + 1);
    return taken;
  }
  // A flag where the value should be means that the value was forgotten; `-1` is a (bad) value.
  if (words.size() < 2 || words[1] == "--" || FindFlag(words[1]) != nullptr) {
    return InvalidArgumentError(
        StrCat(FlagName(*taken.flag), " needs a value: ", name, " ", taken.flag->placeholder));
  }
  taken.value = words[1];
  taken.words = 2;
  return taken;
}

}  // namespace

StatusOr<RunOptions> ParseArguments(std::span<const std::string> arguments) {
  RunOptions options;
  while (!arguments.empty() && arguments.front().starts_with('-')) {
    if (arguments.front() == "--") {
      arguments = arguments.subspan(1);
      break;
    }
    ASSIGN_OR_RETURN(const Taken taken, TakeFlag(arguments));
    RETURN_IF_ERROR(std::visit(
        [&](auto member) { return ReadValue(*taken.flag, taken.value, options.*member); },
        taken.flag->target));
    arguments = arguments.subspan(taken.words);
  }
  options.command.assign(arguments.begin(), arguments.end());
  return options;
}

}  // namespace elastic::internal
