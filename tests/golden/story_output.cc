#include <algorithm>

#include "rendezvous/base/severity_names.h"
#include "tests/golden/story.h"

namespace elastic::internal {

namespace {
const char* StateName(JobState state) {
  switch (state) {
    case JobState::kStarting: return "starting";
    case JobState::kRunning: return "running";
    case JobState::kEntering: return "entering";
    case JobState::kReforming: return "re-forming";
    case JobState::kFinishing: return "finishing";
    case JobState::kFinished: return "finished";
    case JobState::kFailed: return "failed";
  }
  return "?";
}
}  // namespace

std::string Story::Name(WorkerIncarnation incarnation) const {
  const auto found = names_.find(incarnation);
  return found == names_.end() ? ToString(incarnation) : found->second;
}

std::string Story::Names(const std::vector<WorkerIncarnation>& list) const {
  std::string text;
  for (const WorkerIncarnation& incarnation : list) {
    text += (text.empty() ? "" : ",") + Name(incarnation);
  }
  return text.empty() ? "none" : text;
}

void Story::ShowRoster(const char* title, const Roster& roster) {
  out_ << title << " generation " << roster.id.number.value << " after " << roster.parent.value;
  out_ << ", resumes " << (roster.resume.valid() ? ToString(roster.resume.version) : "nothing")
       << ":";
  for (const RosterEntry& entry : roster.entries) {
    if (entry.role == Role::kCopy) {
      out_ << " copy of " << Name(entry.incarnation) << "@" << entry.host;
      continue;
    }
    out_ << " " << entry.rank << "=" << Name(entry.incarnation);
    if (entry.previous_rank < 0) {
      out_ << "(new)";
    } else if (entry.previous_rank != entry.rank) {
      out_ << "(was " << entry.previous_rank << ")";
    }
    out_ << (entry.holds_resume ? "*" : "");
  }
  out_ << "\n";
}

void Story::Show(const Action& action) {
  if (const auto* persist = std::get_if<Persist>(&action)) {
    const JournalRecord& record = persist->record;
    record_ = record;
    if (record.installed && (!installed_ || installed_->id != record.installed->id)) {
      installed_ = record.installed;
      if (!quiet_) {
        ShowRoster("install", *installed_);
      }
    }
    if (!record.prepared.empty() && (!prepared_ || prepared_->id != record.prepared.back().id)) {
      prepared_ = record.prepared.back();
      if (!quiet_) {
        ShowRoster("prepare", *prepared_);
      }
    }
    if (record.finished && !quiet_) {
      out_ << "record finished: generation " << record.finished->generation.number.value
           << ", version " << ToString(record.finished->final_state.version) << "\n";
    }
  } else if (const auto* admit = std::get_if<AdmitAgent>(&action)) {
    for (auto& [name, agent] : agents_) {
      if (agent.connection == admit->connection) {
        agent.incarnation = admit->agent;
        if (!quiet_) {
          out_ << "admit " << name << " as agent " << admit->agent.value << "\n";
        }
      }
    }
  } else if (const auto* refuse = std::get_if<RefuseAgent>(&action)) {
    out_ << "refuse stream " << refuse->connection.value << ": " << refuse->reason.ToString()
         << "\n";
  } else if (const auto* note = std::get_if<Note>(&action); note != nullptr && !quiet_) {
    out_ << SeverityName(note->severity) << ": " << note->text << "\n";
  } else if (const auto* publish = std::get_if<Publish>(&action)) {
    ShowOrders(publish->host);
  } else if (const auto* end = std::get_if<EndJob>(&action)) {
    out_ << "END exit " << end->exit_code << ": " << end->reason << "\n";
  }
}

// Only what differs from what this agent was told before; a bare heartbeat answer shows nothing.
void Story::ShowOrders(const std::string& host) {
  Agent& agent = agents_.at(host);
  const auto directive = membership_->DirectiveFor(host, now_);
  const Directive& d = *directive;
  const Directive before = std::exchange(agent.shown, d);
  std::ostringstream line;
  const auto number = [](const std::optional<Roster>& roster) {
    return roster ? roster->id.number.value : 0;
  };
  if (number(d.installed) != number(before.installed)) {
    line << " installed=" << number(d.installed);
  }
  if (number(d.prepared) != number(before.prepared)) {
    line << " prepared=" << number(d.prepared);
  }
  if (d.closed != before.closed) {
    line << " closed=" << d.closed.value;
  }
  if (d.marks != before.marks) {
    std::vector<WorkerIncarnation> lost;
    for (const Mark& mark : d.marks) {
      lost.push_back(mark.dead);
    }
    line << " marks=" << Names(lost);
  }
  if (d.slots != before.slots) {
    line << " slots=";
    for (const int32_t slot : d.slots) {
      line << (slot == d.slots.front() ? "" : ",") << slot;
    }
    line << (d.slots.empty() ? "none" : "");
  }
  if (d.spawn_allowed != before.spawn_allowed) {
    line << (d.spawn_allowed ? " may-spawn" : " no-spawn");
  }
  const auto list = [&](const char* title, const auto& now_told, const auto& told_before) {
    if (now_told != told_before) {
      line << " " << title << "=" << Names(now_told);
    }
  };
  list("remove", d.remove, before.remove);
  list("offer-again", d.offer_again, before.offer_again);
  list("forget", d.forget, before.forget);
  if (d.finished && !before.finished) {
    line << " finished";
  }
  ShowStore(d, before, line);
  if (d.stop != before.stop && d.stop >= StopMode::kGraceful) {
    line << (d.stop == StopMode::kImmediate ? " stop-now" : " stop");
  }
  if (!quiet_ && !line.str().empty()) {
    out_ << "tell " << host << ":" << line.str() << "\n";
  }
}

void Story::Resets(bool durations) {
  for (const ResetView& reset : membership_->View(now_).resets) {
    out_ << reset.from.value << " -> " << reset.to.value << ", " << reset.size_before << " -> "
         << reset.size_after << ", resumed " << ToString(reset.resumed.version) << ": "
         << reset.cause << "\n";
    if (durations) {
      out_ << "  answers " << FormatDuration(reset.answers) << ", form "
           << FormatDuration(reset.form) << ", enter " << FormatDuration(reset.enter) << "\n";
    }
  }
}

void Story::Status() {
  const JobView view = membership_->View(now_);
  out_ << StateName(view.state) << ": generation " << view.generation.number.value << ", size "
       << view.size << ", newest " << ToString(view.newest.version) << "\n";
  if (!view.wait_text.empty()) {
    out_ << "waits: " << view.wait_text << "\n";
  }
}

}  // namespace elastic::internal
