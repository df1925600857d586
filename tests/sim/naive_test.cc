// The core against naive_rules.h: every order of up to six events on four hosts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <set>

#include "rendezvous/core/membership.h"
#include "tests/sim/naive_rules.h"

namespace elastic::internal {
namespace {

constexpr ServerIncarnation kServer{1};

// The core, with agents that do as they are told at once.
class Cluster {
 public:
  Cluster() : core_(Spec(), kServer, std::nullopt, now_) {
    for (int host = 0; host < kHosts; ++host) {
      agents_.emplace_back();
      Connect(host, false);
    }
    Settle();
  }

  // The first generation that was installed after it, with what it began with.
  std::optional<Outcome> Take(const Happening& event) {
    formed_.reset();
    Agent& agent = agents_[static_cast<size_t>(event.host)];
    if (event.what == What::kDead || event.what == What::kHostLost) {
      CommitAll([&](int32_t rank) { return rank % 2 == event.ahead; });
    }
    switch (event.what) {
      case What::kReady:
        agent.workers.push_back({.incarnation = {agent.id, ++agent.counter},
                                 .slot = event.slot,
                                 .pid = 1000 + agent.counter,
                                 .life = WorkerLife::kWaiting,
                                 .joined = true,
                                 .data = {"w", static_cast<uint16_t>(agent.counter)}});
        break;
      case What::kDead:
        for (WorkerReport& worker : agent.workers) {
          if (worker.slot == event.slot && worker.life != WorkerLife::kDead) {
            worker.life = WorkerLife::kDead;
            worker.cause = DeathCause::kOwnerDied;
            worker.exit = ExitStatus{true, 9};
          }
        }
        break;
      case What::kHostLost:
        agent.up = false;
        Step(AgentDisconnected{agent.connection});
        now_ += std::chrono::milliseconds(250);
        Step(TimePassed{});
        break;
      case What::kHostBack: Connect(event.host, true); break;
    }
    Settle();
    if (formed_) {
      CommitAll([](int32_t) { return true; });
      Settle();
    }
    return formed_;
  }

 private:
  struct Agent {
    bool up = false;
    ConnectionId connection;
    AgentIncarnation id;
    uint32_t counter = 0;
    uint64_t sequence = 0, acked = 0;
    GenerationNumber closed;
    std::optional<Roster> installed, prepared;
    std::vector<WorkerReport> workers;
  };

  static JobSpec Spec() {
    JobSpec spec;
    spec.job_id = "naive";
    spec.np = kNp;
    spec.max_np = kHosts * kSlots;
    spec.no_progress_limit = 1000;
    for (int host = 0; host < kHosts; ++host) {
      spec.hosts.push_back({StrCat("h", host), kSlots});
    }
    return spec;
  }

  void Connect(int host, bool again) {
    Agent& agent = agents_[static_cast<size_t>(host)];
    agent = {.up = true, .connection = {++connections_}};
    Step(AgentConnected{agent.connection, StrCat("h", host), kSlots, {}, kServer, again});
    REQUIRE(agent.id.value != 0);
  }

  void Step(const Event& event) {
    for (const Action& action : core_.Step(now_, event)) {
      if (const auto* admit = std::get_if<AdmitAgent>(&action)) {
        std::ranges::find(agents_, admit->connection, &Agent::connection)->id = admit->agent;
      } else if (const auto* persist = std::get_if<Persist>(&action)) {
        const std::optional<Roster>& roster = persist->record.installed;
        if (roster && roster->id.number > newest_) {
          newest_ = roster->id.number;
          Note(*roster);
        }
      }
    }
    CHECK(core_.BrokenInvariants().empty());
  }

  void Note(const Roster& roster) {
    if (formed_) {
      return;
    }
    formed_ = Outcome{{}, boundary_};
    if (roster.kind == GenerationKind::kInstalled) {
      formed_->step = roster.resume.valid() ? static_cast<int64_t>(roster.resume.step) : -1;
    }
    for (const RosterEntry& entry : roster.entries) {
      if (entry.role == Role::kWorker) {
        CHECK(entry.rank == std::ssize(formed_->ranks));
        formed_->ranks.emplace_back(entry.host[1] - '0', entry.slot);
      }
    }
  }

  void Settle() {
    for (int round = 0; round < 6; ++round) {
      now_ += std::chrono::milliseconds(1);
      for (size_t host = 0; host < agents_.size(); ++host) {
        if (agents_[host].up) {
          Obey(agents_[host], *core_.DirectiveFor(StrCat("h", host), now_));
        }
      }
      CrossBoundary();
      for (size_t host = 0; host < agents_.size(); ++host) {
        Agent& agent = agents_[host];
        if (agent.up) {
          Step(AgentReported{agent.connection,
                             {.host = StrCat("h", host),
                              .agent = agent.id,
                              .sequence = ++agent.sequence,
                              .acked_directive = agent.acked,
                              .installed = agent.installed ? agent.installed->id : GenerationId{},
                              .prepared = agent.prepared ? agent.prepared->id : GenerationId{},
                              .closed = agent.closed,
                              .copies = {"copies", 1},
                              .workers = agent.workers,
                              .server = kServer}});
        }
      }
    }
  }

  static void Enter(WorkerReport& worker, const GenerationId& id, const Held& with) {
    worker.word = {.generation = id.number};
    worker.generation = id;
    worker.held = with;
    worker.life = WorkerLife::kMember;
    worker.entered = true;
  }

  static void Obey(Agent& agent, const Directive& directive) {
    agent.acked = directive.sequence;
    agent.closed = std::max(agent.closed, directive.closed);
    agent.installed = directive.installed;
    agent.prepared = directive.prepared;
    std::erase_if(agent.workers, [&](const WorkerReport& worker) {
      return std::ranges::count(directive.forget, worker.incarnation) > 0;
    });
    for (WorkerReport& worker : agent.workers) {
      CommitWord& word = worker.word;
      if (worker.life == WorkerLife::kDead) {
        continue;
      }
      word.fenced = word.fenced || (word.generation.value != 0 && word.generation <= agent.closed);
      const std::optional<Roster>& roster = agent.installed;
      if (roster && roster->id.number > word.generation && roster->id.number > agent.closed &&
          roster->kind == GenerationKind::kInstalled &&
          roster->Find(worker.incarnation) != nullptr) {
        Enter(worker, roster->id, roster->resume);
      }
    }
  }

  // Every rank contributes the successor once every agent shows it.
  void CrossBoundary() {
    std::optional<Roster> next;
    for (const Agent& agent : agents_) {
      if (agent.up && next && agent.prepared && !(agent.prepared->id == next->id)) {
        return;
      }
      next = agent.up && agent.prepared ? agent.prepared : next;
    }
    Held held;
    std::vector<WorkerReport*> all;
    for (Agent& agent : agents_) {
      for (WorkerReport& worker : agent.workers) {
        if (agent.up && next && worker.life != WorkerLife::kDead &&
            next->Find(worker.incarnation) != nullptr && !worker.word.fenced &&
            worker.word.generation < next->id.number) {
          all.push_back(&worker);
          held = worker.held.version > held.version ? worker.held : held;
        }
      }
    }
    if (next && std::ssize(all) == next->size()) {
      boundary_ = static_cast<int64_t>(held.step);
      for (WorkerReport* worker : all) {
        Enter(*worker, next->id, held);
      }
    }
  }

  template <class Which>
  void CommitAll(Which which) {
    for (Agent& agent : agents_) {
      for (WorkerReport& worker : agent.workers) {
        const RosterEntry* entry =
            agent.installed ? agent.installed->Find(worker.incarnation) : nullptr;
        if (agent.up && entry != nullptr && worker.life == WorkerLife::kMember &&
            !worker.word.fenced && which(entry->rank)) {
          const GenerationNumber number = worker.word.generation;
          ++worker.word.commits;
          worker.held = {.version = {number, worker.word.commits},
                         .digest = uint64_t{number.value} * 1000 + worker.word.commits,
                         .step = worker.held.valid() ? worker.held.step + 1 : 0};
        }
      }
    }
  }

  Instant now_{std::chrono::seconds(1)};
  std::deque<Agent> agents_;
  uint64_t connections_ = 0;
  std::optional<Outcome> formed_;
  GenerationNumber newest_;
  int64_t boundary_ = -1;
  Membership core_;
};

}  // namespace

TEST_CASE(
    "Every order of six events on four hosts keeps, ranks and resumes as the plain rules do") {
  std::deque<std::vector<Happening>> open{{}};
  std::set<std::string> seen;
  int played = 0;
  while (!open.empty()) {
    const std::vector<Happening> path = std::move(open.front());
    open.pop_front();
    Naive at;
    for (const Happening& event : path) {
      at.Take(event);
    }
    for (const Happening& event : at.Next()) {
      std::vector<Happening> longer = path;
      longer.push_back(event);
      Naive naive = at;
      const std::optional<Outcome> want = naive.Take(event);
      Cluster cluster;
      for (const Happening& before : path) {
        cluster.Take(before);
      }
      INFO(Describe(longer));
      const std::optional<Outcome> found = cluster.Take(event);
      ++played;
      REQUIRE(found.has_value() == want.has_value());
      if (want) {
        REQUIRE(found->ranks == want->ranks);
        REQUIRE(found->step == want->step);
      }
      if (std::ssize(longer) < kEventsMax && seen.insert(naive.Key()).second) {
        open.push_back(std::move(longer));
      }
    }
  }
  CHECK(played > 1000);
}

}  // namespace elastic::internal
