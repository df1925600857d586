// The server's driver: one core, a journal, streams that lose, repeat and delay messages.
#include <algorithm>

#include "tests/sim/sim.h"

namespace elastic::internal::sim {

int Sim::HostIndex(const std::string& name) const {
  const auto found = std::ranges::find(hosts_, name, &Host::name);
  return static_cast<int>(found - hosts_.begin());
}

void Sim::StartServer() {
  ++incarnations_.value;
  ++server_.life;
  Trace("server ", incarnations_.value, " starts");
  if (journal_in_memory_ && incarnations_.value > 1) {
    Count("server forgets");
    journal_.reset();
  }
  server_.core = std::make_unique<Membership>(spec_, incarnations_, journal_, now_);
  server_.paused = false;
  server_.backlog.clear();
  server_.connections.clear();
  server_.newest.clear();
  server_.wake_at.reset();
  server_.under_way = 0;
  server_.answered.clear();
  server_.closed = {};
  server_.heard.clear();
  server_.settled = server_.life == 1;
  ScheduleServerWake();
}

void Sim::StopServer() {
  Trace("server ", incarnations_.value, " crashes");
  server_.core.reset();
  server_.heard.clear();
  server_.drain.reset();
  ++server_.life;
  for (const auto& [connection, peer] : server_.connections) {
    const auto [host, life] = peer;
    if (Broken(hosts_[static_cast<size_t>(host)].cut_down)) {
      continue;
    }
    ToAgent(host, life, Between(50, 3000), [this, host = host, id = connection] {
      if (hosts_[static_cast<size_t>(host)].connection == id) {
        hosts_[static_cast<size_t>(host)].connection.reset();
        AgentStep(host, agent_event::StreamLost{});
        Dial(host, hosts_[static_cast<size_t>(host)].life);
      }
    });
  }
  server_.connections.clear();
}

void Sim::ToServer(Duration delay, std::function<void()> action, bool message) {
  server_.under_way += message ? 1 : 0;
  At(delay, [this, message, life = server_.life, action = std::move(action)] {
    if (!server_.core || server_.life != life) {
      return;
    }
    if (message) {
      --server_.under_way;
    }
    if (server_.paused) {
      Hit(server_.paused_by, true);
      server_.backlog.push_back([this, life, action] {
        if (server_.core && server_.life == life) {
          action();
        }
      });
      return;
    }
    action();
  });
}

void Sim::ServerStep(const Event& event) {
  const int life = server_.life;
  Trace("server event ", event.index());
  ++result_.events;
  const Actions actions = server_.core->Step(now_, event);
  const bool decided = std::ranges::any_of(
      actions, [](const Action& action) { return std::holds_alternative<Persist>(action); });
  if (server_.drain && (decided || server_.core->View(now_).state != JobState::kRunning)) {
    RestartServer(Between(20'000, 300'000));  // before any of it is on record
    return;
  }
  for (const Action& action : actions) {
    if (server_.life != life || !server_.core) {
      return;
    }
    Carry(action);
  }
  for (const std::string& text : server_.core->BrokenInvariants()) {
    Violate("server " + text);
  }
  NoteAwaited(server_.core->View(now_));
  ScheduleServerWake();
}

void Sim::ScheduleServerWake() {
  const std::optional<Instant> next = server_.core->NextDeadline();
  if (!next || (server_.wake_at && *server_.wake_at <= *next)) {
    return;
  }
  server_.wake_at = *next;
  const auto wake = [this] {
    server_.wake_at.reset();
    ServerStep(TimePassed{});
  };
  ToServer(std::max(*next - now_, Duration{0}), wake, false);
}

void Sim::Carry(const Action& action) {
  if (const auto* persist = std::get_if<Persist>(&action)) {
    Trace("  persist installed ",
          persist->record.installed ? persist->record.installed->id.number.value : 0, " prepared ",
          persist->record.prepared.empty() ? 0 : persist->record.prepared.back().id.number.value);
    CheckPersisted(persist->record);
    journal_ = persist->record;
  } else if (const auto* admit = std::get_if<AdmitAgent>(&action)) {
    const auto found = server_.connections.find(admit->connection);
    if (found == server_.connections.end()) {
      return;
    }
    const auto [host, life] = found->second;
    server_.newest[host] = admit->connection;
    if (Broken(hosts_[static_cast<size_t>(host)].cut_down, host)) {
      return;
    }
    ToAgent(
        host, life, Between(100, 2000),
        [this, host = host, id = admit->connection, agent = admit->agent, server = incarnations_] {
          Host& to = hosts_[static_cast<size_t>(host)];
          if (to.connection == id) {
            to.registered = true;
            to.incarnation = agent;
            to.server_seen = server;
            AgentStep(host, agent_event::Registered{agent, server});
          }
        });
  } else if (const auto* refuse = std::get_if<RefuseAgent>(&action)) {
    Trace("  refuse: ", refuse->reason.message());
    const auto found = server_.connections.find(refuse->connection);
    if (found != server_.connections.end()) {
      const auto [host, life] = found->second;
      ToAgent(host, life, Between(100, 2000),
              [this, host = host] { EndAgentProcess(host, false); });
    }
  } else if (const auto* publish = std::get_if<Publish>(&action)) {
    SendDirective(publish->host);
  } else if (const auto* note = std::get_if<Note>(&action)) {
    Trace("  note: ", note->text);
  } else if (const auto* end = std::get_if<EndJob>(&action)) {
    Trace("job ends with ", end->exit_code, ": ", end->reason);
    job_ended_ = true;
    state_reachable_ = StateReachable();
    result_.exit_code = end->exit_code;
    result_.outcome = end->reason;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const int host = static_cast<int>(i);
      ToAgent(host, hosts_[i].life, Between(100, 2000),
              [this, host] { AgentStep(host, agent_event::LauncherGone{"job over"}); });
    }
  }
}

// A stream may repeat, delay or lose a message; a new one makes an old one superfluous.
void Sim::SendDirective(const std::string& name) {
  const int host = HostIndex(name);
  std::optional<Directive> directive = server_.core->DirectiveFor(name, now_);
  const auto newest = server_.newest.find(host);
  if (!directive || newest == server_.newest.end()) {
    return;
  }
  const auto peer = server_.connections.find(newest->second);
  if (peer == server_.connections.end()) {
    return;
  }
  if (server_.drain) {
    directive->prepared = server_.drain;
  }
  server_.closed = std::max(server_.closed, directive->closed);
  Trace("  directive ", directive->sequence, " to ", name, ": closed ", directive->closed.value,
        directive->spawn_allowed ? ", may spawn " : ", no spawn, wanted ", directive->slots.size(),
        ", marks ", directive->marks.size(), ", acks ", directive->acked_report);
  int copies = rng_.Chance(static_cast<uint64_t>(drop_percent_), 100) ? 0 : 1;
  copies += rng_.Chance(static_cast<uint64_t>(duplicate_percent_), 100) ? 1 : 0;
  for (int i = 0; i < copies; ++i) {
    const bool slow = duplicate_percent_ > 0 && rng_.Chance(1, 20);
    const Duration delay = slow ? Between(1000, 400'000) : Between(50, 3000);
    At(delay, [this, host, life = peer->second.second, id = newest->second, order = *directive] {
      if (Broken(hosts_[static_cast<size_t>(host)].cut_down, host)) {
        return;
      }
      ToAgent(host, life, Duration{0}, [this, host, id, order] {
        Host& to = hosts_[static_cast<size_t>(host)];
        if (to.connection == id && to.registered) {
          for (const std::optional<Roster>& roster : {order.installed, order.prepared}) {
            if (roster) {
              told_[roster->id.number].insert({host, to.life});
            }
          }
          const auto sent = to.reports.find(order.acked_report);
          if (sent != to.reports.end()) {
            to.acknowledged = std::max(to.acknowledged, sent->second);
            to.reports.erase(to.reports.begin(), std::next(sent));
          }
          AgentStep(host, agent_event::DirectiveCame{order});
        }
      });
    });
  }
}

}  // namespace elastic::internal::sim
