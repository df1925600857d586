#include "launcher/cli/ctl_table.h"

#include <algorithm>
#include <vector>

#include "launcher/cli/ctl_names.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

// Lines of cells, printed in columns as wide as their widest cell.
class Columns {
 public:
  explicit Columns(std::vector<std::string> titles) { Add(std::move(titles)); }
  void Add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }
  std::string Text() const {
    std::vector<size_t> widths;
    for (const auto& line : lines_) {
      widths.resize(std::max(widths.size(), line.size()));
      for (size_t i = 0; i < line.size(); ++i) {
        widths[i] = std::max(widths[i], line[i].size());
      }
    }
    std::string text;
    for (const auto& line : lines_) {
      for (size_t i = 0; i < line.size(); ++i) {
        // No blanks at the end of a line.
        text += i + 1 < line.size() ? line[i] + std::string(widths[i] + 2 - line[i].size(), ' ')
                                    : line[i] + "\n";
      }
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> lines_;
};

std::string HeldText(const Held& held) {
  return held.valid() ? StrCat("step ", held.step, " of generation ", held.version.generation.value)
                      : "none";
}

std::string StateText(const WorkerReport& report) {
  if (report.life != WorkerLife::kDead) {
    const bool entering = report.life == WorkerLife::kMember && !report.entered;
    return StrCat(NameOf(report.life), entering ? ", entering" : "",
                  report.finished.has_value() ? ", finished" : "");
  }
  if (report.cause == DeathCause::kMarkedByServer) {
    return "dead: killed by its agent, as the server asked";
  }
  if (report.cause == DeathCause::kStopped) {
    return "dead: was stopped (state T), killed by its agent";
  }
  return StrCat("dead: ", report.exit.has_value() ? ToString(*report.exit)
                                                  : std::string(NameOf(report.cause)));
}

std::string AgentText(const HostView& host) {
  return !host.registered ? "none" : host.counted ? "in touch" : "silent";
}

// The phase, in words for people: JSON has its name.
std::string DoingText(Phase phase) {
  return phase == Phase::kOutside        ? "own code"
         : phase == Phase::kInCollective ? "collective"
                                         : std::string(NameOf(phase));
}

std::string HostTable(const JobView& view) {
  Columns columns({"HOST", "SLOTS", "AGENT", "LAST HEARD"});
  for (const HostView& host : view.hosts) {
    columns.Add({host.name, StrCat(host.slots), AgentText(host),
                 host.registered ? FormatDuration(host.heartbeat_age) + " ago" : "-"});
  }
  return columns.Text();
}

std::string WorkerTable(const JobView& view) {
  Columns columns({"RANK", "HOST:SLOT", "PID", "LAST HEARD", "DOING", "STATE", "HAS COMMITTED"});
  for (const WorkerView& worker : view.workers) {
    const WorkerReport& report = worker.report;
    const bool dead = report.life == WorkerLife::kDead;
    columns.Add({worker.rank >= 0 ? StrCat(worker.rank) : "-",
                 StrCat(worker.host, ":", report.slot), StrCat(report.pid),
                 dead ? "-" : FormatDuration(BeatAge(view, worker)) + " ago",
                 dead ? "-" : DoingText(report.phase), StateText(report), HeldText(report.held)});
  }
  return columns.Text();
}

std::string ResetTable(const JobView& view) {
  Columns columns(
      {"GENERATION", "SIZE", "ALL TOLD", "NEXT FORMED", "ALL IN", "RESUMED FROM", "CAUSE"});
  for (const ResetView& reset : view.resets) {
    columns.Add({StrCat(reset.from.value, " -> ", reset.to.value),
                 StrCat(reset.size_before, " -> ", reset.size_after), FormatDuration(reset.answers),
                 FormatDuration(reset.form),
                 reset.complete ? FormatDuration(reset.enter) : "not yet", HeldText(reset.resumed),
                 reset.cause});
  }
  return columns.Text();
}

}  // namespace

std::string StatusTable(const JobView& view) {
  std::string text = StrCat("job ", view.job_id, ": ", NameOf(view.state), "\n");
  text += view.generation.valid()
              ? StrCat("generation ", view.generation.number.value, ", size ", view.size)
              : std::string("no generation yet");
  text += StrCat(" (-np ", view.np, ", --min-np ", view.min_np, ")\n");
  text += StrCat("newest committed state: ", HeldText(view.newest), "\n");
  if (!view.wait_text.empty()) {
    text += StrCat("waits: ", view.wait_text, "\n");
  }
  text += "\n" + HostTable(view);
  if (!view.workers.empty()) {
    text += "\n" + WorkerTable(view);
  }
  if (!view.resets.empty()) {
    text += StrCat("\nlast changes of membership (", view.resets_total, " in all):\n",
                   ResetTable(view));
  }
  return text;
}

}  // namespace elastic::internal
