#include "launcher/cli/help.h"

#include <algorithm>
#include <string_view>

#include "launcher/cli/flag_table.h"
#include "rendezvous/base/severity_names.h"

namespace elastic::internal {

namespace {

constexpr size_t kHelpColumn = 30;
constexpr size_t kLineLength = 96;

constexpr std::string_view kIntroduction =
    "usage: elastic-run -np N [flags] [--] command [arguments]\n"
    "\n"
    "Runs N workers of a data-parallel training program. When one is lost the others go on in\n"
    "their processes from the last committed step, and a replacement joins them.\n";

constexpr std::string_view kEnd =
    "\n"
    "Times take a unit: 300ms, 3s, 10m, 1h; a bare number is seconds. Flags of the program come\n"
    "after its name. Ctrl-C stops the workers with SIGTERM and the grace period, a second one at\n"
    "once.\n"
    "\n"
    "Exit codes:\n"
    "    0  the job finished\n"
    "    1  a worker failed for good: too many generations in a row brought no committed step\n"
    "       (--no-progress-limit), or a worker ended before it ever joined\n"
    "    2  wrong flags or set-up: nothing was started\n"
    "    3  fewer than --min-np workers at --start-timeout, or later for longer than\n"
    "       --elastic-timeout\n"
    "    5  the committed state, or the job's server, was lost (--allow-restart-from-zero)\n"
    "  130  stopped by Ctrl-C (SIGINT)\n"
    "  143  stopped by SIGTERM or SIGHUP\n"
    "\n"
    "Example: four workers on two hosts, training goes on while two are left:\n"
    "  elastic-run -np 4 --min-np 2 -H 127.0.0.1:2,127.0.0.2:2 ./train --epochs 5\n";

std::string_view Title(FlagGroup group) {
  switch (group) {
    case FlagGroup::kWorkers: return "Workers";
    case FlagGroup::kHosts: return "Hosts";
    case FlagGroup::kFailures: return "Failures";
    case FlagGroup::kTimes: return "Times";
    case FlagGroup::kOutput: return "Output";
  }
  return "";
}

std::string DefaultText(const Flag& flag) {
  if (!flag.default_note.empty()) {
    return std::string(flag.default_note);
  }
  const RunOptions defaults;
  if (const auto* number = std::get_if<int RunOptions::*>(&flag.target)) {
    return "default: " + std::to_string(defaults.*(*number));
  }
  if (const auto* duration = std::get_if<Duration RunOptions::*>(&flag.target)) {
    return "default: " + FormatDuration(defaults.*(*duration));
  }
  if (const auto* text = std::get_if<std::string RunOptions::*>(&flag.target)) {
    return "default: " + defaults.*(*text);
  }
  if (const auto* level = std::get_if<Severity RunOptions::*>(&flag.target)) {
    return "default: " + std::string(SeverityName(defaults.*(*level)));
  }
  return {};
}

// Writes words behind the column of explanations, on as many lines as they need.
class Column {
 public:
  explicit Column(std::string& out) : out_(out) {}

  void AddText(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      AddUnbroken(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  void AddUnbroken(std::string_view word) {
    if (column_ + 1 + word.size() > kLineLength) {
      out_ += "\n" + std::string(kHelpColumn, ' ');
      column_ = kHelpColumn;
    }
    if (column_ > kHelpColumn) {
      out_ += ' ';
      ++column_;
    }
    out_ += word;
    column_ += word.size();
  }

 private:
  std::string& out_;
  size_t column_ = kHelpColumn;
};

void AppendFlag(std::string& out, const Flag& flag) {
  std::string left = "  ";
  left += flag.alias.empty() ? "" : std::string(flag.alias) + ", ";
  left += flag.name;
  left += flag.placeholder.empty() ? "" : " " + std::string(flag.placeholder);
  out += left;
  if (left.size() + 2 > kHelpColumn) {
    out += "\n" + std::string(kHelpColumn, ' ');
  } else {
    out += std::string(kHelpColumn - left.size(), ' ');
  }
  Column column(out);
  column.AddText(flag.help);
  if (const std::string default_text = DefaultText(flag); !default_text.empty()) {
    column.AddUnbroken("(" + default_text + ")");
  }
  out += '\n';
}

}  // namespace

std::string HelpText() {
  std::string out(kIntroduction);
  std::string_view title;
  for (const Flag& flag : FlagTable()) {
    if (Title(flag.group) != title) {
      title = Title(flag.group);
      out += "\n" + std::string(title) + ":\n";
    }
    AppendFlag(out, flag);
  }
  return out.append(kEnd);
}

std::string VersionText() { return "elastic-run " ELASTIC_VERSION; }

}  // namespace elastic::internal
