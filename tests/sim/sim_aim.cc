// When a fault falls and on whom: at random steps, so that it falls where something happens; and a
// few of each run aimed at a stage of the protocol that random ones seldom meet.
#include <algorithm>

#include "rendezvous/core/ranks.h"
#include "tests/sim/sim.h"

namespace elastic::internal::sim {

namespace {

// One in so many steps while a run waits for a stage.
constexpr uint64_t kTakeAim = 4;
constexpr uint64_t kLeadUp = 400;
constexpr uint64_t kLeadUpSoon = 12;  // where what it waits for is short

}  // namespace

void Sim::MaybeFault() {
  if (drains_ && !healing_ && !job_ended_ && server_.core && StageNow() == Stage::kRunning &&
      rng_.Chance(1, kLeadUp) && BeginDrain()) {
    drains_ = false;
    Count("fault server crash");
    return;
  }
  if (healing_ || job_ended_ || MaybeTargeted() || faults_left_ <= 0 ||
      !rng_.Chance(1, fault_odds_)) {
    return;
  }
  // Workers die more often than anything else, as in life.
  const uint64_t pick = rng_.Below(2 * kFaults);
  const Fault fault = pick < kFaults ? static_cast<Fault>(pick) : Fault::kWorkerCrash;
  --faults_left_;
  Inject(fault, {PickProcess(false), PickHost(false)});
}

// A fault that waits for its stage, with a victim that is waited for there.
bool Sim::MaybeTargeted() {
  if (targets_.empty()) {
    return false;
  }
  const auto at = std::ranges::find(targets_, StageNow(true), &Target::stage);
  if (at == targets_.end()) {
    return LeadUp(targets_.front());
  }
  const Target target = *at;
  if (!rng_.Chance(1, kTakeAim) || (AtServer(target.fault) && server_.under_way == 0) ||
      !Inject(target.fault, {PickProcess(true), PickHost(true)})) {
    return false;
  }
  targets_.erase(at);
  return true;
}

// The fault that leads to the stage which another one waits for.
bool Sim::LeadUp(const Target& target) {
  const Stage stage = StageNow();
  const bool away = target.stage == Stage::kServerAway;
  const bool dials = target.fault == Fault::kDialFails || target.fault == Fault::kNoAnswer;
  const bool dialling = stage == Stage::kPrepared || stage == Stage::kEnteredInPart;
  const bool starting = std::ranges::any_of(
      processes_, [](const auto& entry) { return entry.second.alive && entry.second.late; });
  const bool soon = dials ? dialling : target.fault == Fault::kSlowStart && starting;
  if (away && soon) {
    return rng_.Chance(1, kLeadUpSoon) && Inject(Fault::kServerRestart, {});
  }
  if (stage != Stage::kRunning || target.stage == Stage::kFinishing || starting ||
      !rng_.Chance(1, kLeadUp)) {
    return false;
  }
  const Fault fault = !away                               ? Fault::kWorkerCrash
                      : target.fault == Fault::kSlowStart ? Fault::kSlowStart
                      : dials                             ? Fault::kWorkerCrash
                                                          : Fault::kServerRestart;
  return Inject(fault, {PickProcess(false), PickHost(false)});
}

// The first member enters what a server that drains has prepared. That server crashes before it
// hears of it, and the next one may not hear of it either: the successor must not be taken for one
// that nobody is in (V1).
void Sim::HideEntry(const GenerationId& generation) {
  if (!server_.drain || server_.drain->id != generation) {
    return;
  }
  std::set<int> hosts;
  for (const RosterEntry& entry : server_.drain->entries) {
    hosts.insert(HostIndex(entry.host));
  }
  RestartServer(Between(20'000, 300'000));
  if (healing_ || !rng_.Chance(3, 4)) {
    return;
  }
  Count("entered unseen");
  only_workers_lost_ = false;
  const Duration length = Between(2'500'000, 5'500'000);
  for (const int host : hosts) {
    Trace("FAULT ", NameOf(Fault::kCutUp), " of ", hosts_[static_cast<size_t>(host)].name);
    Cut(host, length, {Fault::kCutUp, ++injected_});
  }
}

Process* Sim::PickProcess(bool awaited) {
  std::vector<Process*> alive;
  for (auto& [id, process] : processes_) {
    if (process.alive && (!awaited || Awaits(process))) {
      alive.push_back(&process);
    }
  }
  return alive.empty() ? nullptr : alive[rng_.Below(alive.size())];
}

std::optional<int> Sim::PickHost(bool awaited) {
  std::vector<int> able;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    if (hosts_[i].agent && (!awaited || Awaits(host))) {
      able.push_back(host);
    }
  }
  return able.empty() ? std::nullopt : std::optional(able[rng_.Below(able.size())]);
}

// Operators may drain members. The cores that run here have no order for it yet, so a server that
// drains is made of one that does not: the successor without those members is on record and in the
// directives, and the server crashes before the core would have to know.
bool Sim::BeginDrain() {
  const JobView view = server_.core->View(now_);
  if (view.state != JobState::kRunning || !journal_ || !journal_->installed ||
      !journal_->prepared.empty() || view.size < 2 || server_.drain) {
    return false;
  }
  std::vector<Candidate> stay;
  const bool whole_host = rng_.Chance(2, 3);
  const std::string host = journal_->installed->entries.back().host;
  for (const RosterEntry& entry : journal_->installed->entries) {
    if (entry.role == Role::kWorker && (whole_host ? entry.host != host : rng_.Chance(1, 2))) {
      stay.push_back({.incarnation = entry.incarnation,
                      .host_order = HostIndex(entry.host),
                      .host = entry.host,
                      .slot = entry.slot,
                      .data = entry.data,
                      .previous_rank = entry.rank});
    }
  }
  if (std::ssize(stay) == view.size || std::ssize(stay) < spec_.min_np) {
    return false;
  }
  Count("drain prepared");
  Trace("FAULT the server begins to drain and crashes");
  only_workers_lost_ = false;
  Roster roster{.id = {},
                .kind = GenerationKind::kPrepared,
                .parent = journal_->installed->id.number,
                .resume = {},
                .entries = AssignRanks(std::move(stay))};
  ++journal_->numbers_reserved.value;
  roster.id = {incarnations_, journal_->numbers_reserved, RosterDigest(roster)};
  ghost_.Formed(roster);
  journal_->prepared.push_back(roster);
  server_.drain = std::move(roster);
  for (const Host& to : hosts_) {
    SendDirective(to.name);
  }
  At(Between(30'000, 250'000), [this, life = server_.life] {
    if (server_.core && server_.life == life) {
      RestartServer(Between(20'000, 1'500'000));
    }
  });
  return true;
}

}  // namespace elastic::internal::sim
