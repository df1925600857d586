// What AgentCore decided, carried out in order.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <map>
#include <utility>

#include "launcher/agent/agent_driver.h"
#include "launcher/agent/agent_limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

void AgentDriver::Feed(AgentEvent event, std::optional<WorkerIncarnation> read_page) {
  pending_.push_back({std::move(event), read_page});
}

void AgentDriver::Pump() {
  while (!pending_.empty() && !exit_code_) {
    Pending next = std::move(pending_.front());
    pending_.pop_front();
    if (next.read_page) {
      Step(agent_event::PageRead{*next.read_page, {}});
    }
    Step(std::move(next.event));
  }
}

// Fences, kills and rosters of a step go out before anything is told or printed.
void AgentDriver::Step(AgentEvent event) {
  FillReading(event);
  const auto append = [this](AgentActions actions) {
    std::ranges::move(actions, std::back_inserter(actions_));
  };
  append(core_.Step(Now(), event));
  while (!actions_.empty()) {
    const AgentAction action = std::move(actions_.front());
    actions_.pop_front();
    std::visit([this](const auto& alternative) { Carry(alternative); }, action);
  }
  if (std::exchange(report_due_, false)) {
    parts_.send_report(core_.MakeReport(Now()));
  }
  if (const auto* died = std::get_if<agent_event::OwnerDied>(&event)) {
    ServeCopy(died->process);
  } else if (const auto* leaving = std::get_if<agent_event::Leaving>(&event)) {
    ServeCopy(leaving->process);  // it may live on for a while
  } else if (const auto* exited = std::get_if<agent_event::Exited>(&event)) {
    ServeCopy(exited->process);
  } else if (const auto* entered = std::get_if<agent_event::Entered>(&event)) {
    SetLabel(*entered);
  }
  for (const agent_action::Say& say : std::exchange(says_, {})) {
    Log(say.severity, say.text);
  }
}

// Pages are read at the moment when the core looks, not when the event was noticed.
void AgentDriver::FillReading(AgentEvent& event) {
  const auto fill = [this](WorkerIncarnation process, PageReading& reading) {
    const WorkerEntry* const entry = table_.Find(process);
    if (entry != nullptr && entry->page != nullptr) {
      reading = entry->page->Read();
    }
  };
  if (auto* page = std::get_if<agent_event::PageRead>(&event)) {
    fill(page->process, page->reading);
  } else if (auto* died = std::get_if<agent_event::OwnerDied>(&event)) {
    fill(died->process, died->reading);
  } else if (auto* exited = std::get_if<agent_event::Exited>(&event)) {
    fill(exited->process, exited->reading);
  }
}

// The answer to a Fence or Reset is part of carrying it out.
void AgentDriver::ReadPage(WorkerIncarnation process) {
  AgentEvent event = agent_event::PageRead{process, {}};
  FillReading(event);
  AgentActions actions = core_.Step(Now(), event);
  std::ranges::move(actions, std::back_inserter(actions_));
}

void AgentDriver::ServeCopy(WorkerIncarnation process) {
  const WorkerEntry* const entry = table_.Find(process);
  if (entry != nullptr && entry->page != nullptr) {
    copies_->Serve(entry->incarnation, entry->page->ReadHeld());
  }
}

void AgentDriver::SetLabel(const agent_event::Entered& entered) {
  WorkerEntry* const entry = table_.Find(entered.process);
  if (entry == nullptr) {
    return;
  }
  const auto found = entry->ranks.find(entered.generation.number);
  if (found != entry->ranks.end()) {
    parts_.output.SetLabel(entered.process, std::to_string(found->second));
    entry->ranks.erase(entry->ranks.begin(), found);
  }
}

void AgentDriver::Carry(const agent_action::Fence& action) {
  if (const WorkerEntry* entry = table_.Find(action.process);
      entry != nullptr && entry->page != nullptr) {
    entry->page->Fence(action.expected, Now());
  }
  ReadPage(action.process);
}

void AgentDriver::Carry(const agent_action::Reset& action) {
  if (const WorkerEntry* entry = table_.Find(action.process);
      entry != nullptr && entry->page != nullptr) {
    entry->page->Reset(action.from, action.to, action.generation);
  }
  ReadPage(action.process);
}

void AgentDriver::Carry(const agent_action::OfferAgain& action) {
  if (WorkerEntry* entry = table_.Find(action.process)) {
    copies_->Register(action.incarnation, entry->descriptors.state.get());
    copies_->Forget(std::exchange(entry->incarnation, action.incarnation));
    entry->ranks.clear();
  }
  const local::OfferedAgain body{local::ToWire(action.incarnation)};
  link_->Send(action.process, local::MakeFrame(local::FrameKind::kOfferedAgain, body));
}

void AgentDriver::Carry(const agent_action::DeliverRoster& action) {
  if (WorkerEntry* entry = table_.Find(action.process); entry != nullptr && action.rank >= 0) {
    if (entry->ranks.empty()) {
      // A newcomer prints as soon as it has entered, which is before its agent hears of that.
      parts_.output.SetLabel(action.process, std::to_string(action.rank));
    }
    entry->ranks[action.roster.id.number] = action.rank;
  }
  for (local::Frame& frame : local::RosterFrames(action.roster)) {
    link_->Send(action.process, std::move(frame));
  }
}

void AgentDriver::Carry(const agent_action::DeliverFinish& action) {
  local::FinishRecorded body{};
  body.generation = local::ToWire(action.record.generation);
  body.final_state = local::ToWire(action.record.final_state);
  link_->Send(action.process, local::MakeFrame(local::FrameKind::kFinishRecorded, body));
}

void AgentDriver::Carry(const agent_action::TellLeave& action) {
  link_->Send(action.process, local::MakeFrame(local::FrameKind::kLeave));
}

void AgentDriver::Carry(const agent_action::TellStop& action) {
  link_->Send(action.process, local::MakeFrame(local::FrameKind::kStopWanted));
}

std::vector<std::string> AgentDriver::EnvironmentOf(const WorkerEntry& entry) const {
  std::map<std::string, std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos && equals != 0) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  // Output of a Python program that dies must not die with it.
  variables.emplace("PYTHONUNBUFFERED", "1");
  variables["ELASTIC_AGENT_SOCKET"] = parts_.traces.worker_socket;
  variables["ELASTIC_JOB_ID"] = parts_.bootstrap.job_id;
  variables["ELASTIC_LOCAL_RANK"] = std::to_string(entry.slot);
  variables[kWorkerVariable] = table_.MarkOf(entry.process);
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) {
    result.push_back(name + '=' + value);
  }
  return result;
}

void AgentDriver::Carry(const agent_action::Spawn& action) {
  const WorkerEntry& entry = table_.Add(action.process, action.slot);
  Check(parts_.guardian.Spawn({.incarnation = action.process,
                               .command = parts_.bootstrap.command,
                               .environment = EnvironmentOf(entry)}));
}

void AgentDriver::Carry(const agent_action::Kill& action) {
  Check(parts_.guardian.Kill(action.process, action.signal));
}

void AgentDriver::Carry(const agent_action::Forget& action) {
  const WorkerEntry* const entry = table_.Find(action.process);
  const WorkerIncarnation incarnation = entry != nullptr ? entry->incarnation : action.process;
  for (const auto& watch : watches_) {
    watch->Remove(action.process);  // before the page that it looks at goes
  }
  link_->Close(action.process);
  table_.Remove(action.process);
  // Last, so that the state's memory is freed by that thread and not by this one.
  copies_->Forget(incarnation);
}

void AgentDriver::Carry(const agent_action::Report&) { report_due_ = true; }

void AgentDriver::Carry(const agent_action::StampDeadline& action) {
  kill_at_ = action.kill_at;
  parts_.guardian.page().kill_at_ns.store(ToNanoseconds(kill_at_), std::memory_order_release);
  for (const auto& [process, entry] : table_.entries()) {
    if (entry.page != nullptr && !entry.exited) {
      entry.page->StampDeadline(kill_at_);
    }
  }
}

void AgentDriver::Carry(const agent_action::Say& action) { says_.push_back(action); }

void AgentDriver::Carry(const agent_action::EndAgent& action) {
  exit_code_ = exit_code_.value_or(action.exit_code);
}

// Without its guardian an agent cannot keep its promises: it kills what is left and ends, and the
// launcher starts another (P23).
void AgentDriver::Check(const Status& guardian_status) {
  if (!guardian_status.ok() && !exit_code_) {
    LogError(guardian_status.message(), "; the workers of this host are killed");
    exit_code_ = kAgentExitGuardianLost;
  }
}

}  // namespace elastic::internal
