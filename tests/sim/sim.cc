#include "tests/sim/sim.h"

#include <algorithm>
#include <cstdio>

#include "rendezvous/base/hash.h"

namespace elastic::internal::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kStepsMax = 3'000'000;
constexpr size_t kViolationsMax = 5;
// How many faults of a run wait for a stage to hit.
constexpr uint64_t kTargets = 6;
// Most of these miss: by the time they tell, the stage is over.
constexpr Target kSeldomMet[] = {
    {Fault::kWorkerStop, Stage::kServerAway},   {Fault::kEdgeReset, Stage::kPrepared},
    {Fault::kEdgeReset, Stage::kEnteredInPart}, {Fault::kGuardianStop, Stage::kPrepared},
    {Fault::kGuardianStop, Stage::kMarked},     {Fault::kGuardianStop, Stage::kEnteredInPart}};
// After the faults the job goes on or ends within these; the elastic time-out is one of the waits.
constexpr Duration kStandstillMax = seconds(30);
constexpr int kElasticTimeoutsMax = 3;

}  // namespace

Sim::Sim(Options options) : options_(options), rng_(options.seed) {
  const int hosts = 2 + static_cast<int>(rng_.Below(2));
  spec_.job_id = "sim";
  spec_.np = 0;
  for (int i = 0; i < hosts; ++i) {
    const auto slots = static_cast<int32_t>(1 + rng_.Below(2));
    spec_.hosts.push_back({"h" + std::to_string(i), slots});
    spec_.np += slots;
  }
  if (spec_.np > 2 && rng_.Chance(1, 4)) {
    --spec_.np;  // a spare slot
  }
  spec_.max_np = spec_.np;
  spec_.min_np = static_cast<int>(1 + rng_.Below(static_cast<uint64_t>(spec_.np)));
  spec_.heartbeat_timeout = seconds(2);
  spec_.elastic_timeout = seconds(90);
  spec_.entry_timeout = seconds(8);
  spec_.orphan_limit = seconds(6);
  spec_.no_progress_limit = 1000;  // the faults are ours, not the program's
  grace_ = seconds(2);
  steps_ = 60 + rng_.Below(60);
  journal_in_memory_ = rng_.Chance(1, 2);
  drop_percent_ = rng_.Chance(1, 2) ? static_cast<int>(rng_.Below(20)) : 0;
  duplicate_percent_ = rng_.Chance(1, 2) ? static_cast<int>(rng_.Below(20)) : 0;
  faults_left_ = options.faults >= 0 ? options.faults : static_cast<int>(rng_.Below(7));
  fault_odds_ = 30 + rng_.Below(600);
  drains_ = options.faults != 0 && rng_.Chance(1, 3);
  if (drains_) {
    spec_.min_np = 1;  // or it could not go on with those that are drained (V1)
  }
  if (options.faults != 0) {
    targets_.push_back(kSeldomMet[options.seed % std::size(kSeldomMet)]);
  }
  for (uint64_t i = 0; options.faults != 0 && i < kTargets; ++i) {
    const uint64_t pair = (options.seed * kTargets + i) % (kFaults * kStages);
    const Target target{static_cast<Fault>(pair / kStages), static_cast<Stage>(pair % kStages)};
    if (NeverMeets(target.fault, target.stage) == nullptr) {
      targets_.push_back(target);
    }
  }
  for (const HostSpec& host : spec_.hosts) {
    hosts_.emplace_back();
    hosts_.back().name = host.name;
    hosts_.back().slots = host.slots;
  }
}

void Sim::At(Duration delay, std::function<void()> action) {
  queue_.emplace(std::pair{now_ + delay, ++sequence_}, std::move(action));
}

Duration Sim::Between(int64_t microseconds_min, int64_t microseconds_max) {
  const auto span = static_cast<uint64_t>(microseconds_max - microseconds_min + 1);
  return microseconds(microseconds_min + static_cast<int64_t>(rng_.Below(span)));
}

void Sim::TraceText(const std::string& text) {
  result_.trace =
      HashText(text, HashMix(result_.trace, static_cast<uint64_t>(ToNanoseconds(now_))));
  if (options_.verbose) {
    std::printf("%12.3f ms  %s\n", ToMilliseconds(now_.time_since_epoch()), text.c_str());
  }
}

void Sim::Violate(const std::string& text) {
  if (result_.violations.size() < kViolationsMax) {
    result_.violations.push_back(
        StrCat("at ", FormatDuration(now_.time_since_epoch()), ": ", text));
    Trace("VIOLATION ", text);
  }
}

bool Sim::RunUntil(Instant end) {
  while (!queue_.empty() && result_.violations.empty()) {
    const auto first = queue_.begin();
    if (first->first.first > end) {
      now_ = end;
      return true;
    }
    now_ = first->first.first;
    const std::function<void()> action = std::move(first->second);
    queue_.erase(first);
    action();
    if (++steps_taken_ > kStepsMax) {
      Violate("G18 the run does not come to rest: " + std::to_string(kStepsMax) + " steps");
    }
    for (const std::string& text : ghost_.violations()) {
      Violate(text);
    }
    MaybeFault();
    if (job_ended_ && Quiet()) {
      return false;
    }
  }
  return false;
}

// Nothing of the job is left.
bool Sim::Quiet() const {
  return std::ranges::none_of(processes_, [](const auto& entry) { return entry.second.alive; }) &&
         std::ranges::none_of(hosts_, [](const Host& host) { return host.agent != nullptr; });
}

Result Sim::Run() {
  now_ = Instant(seconds(1));
  StartServer();
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    At(Between(0, 200'000), [this, host] { StartAgent(host); });
  }
  // Safety: whatever happens, nothing wrong does.
  const Duration fault_phase = Between(2'000'000, 30'000'000);
  const bool goes_on = RunUntil(now_ + fault_phase);
  // Liveness: without further faults the job goes on, or says for what it waits, and it ends.
  Heal();
  const Instant end = now_ + kElasticTimeoutsMax * spec_.elastic_timeout;
  while (goes_on && now_ < end && RunUntil(std::min(end, now_ + seconds(1)))) {
    CheckGoesOn();
  }
  CheckEnd();
  return std::move(result_);
}

// Faults stop, everything comes back; from now on the job must get on by itself.
void Sim::Heal() {
  Trace("heal");
  healing_ = true;
  faults_left_ = 0;
  drop_percent_ = duplicate_percent_ = 0;
  committed_at_ = now_;
  for (Host& host : hosts_) {
    host.cut_up = host.cut_down = host.guardian_stopped = {};
    host.cut_to.clear();
    host.suspended = host.slow_next = false;
  }
  for (auto& [id, process] : processes_) {
    const Host& host = hosts_[static_cast<size_t>(process.host)];
    const bool over = host.life == process.life && host.kill_at && *host.kill_at <= now_;
    if (process.alive && std::exchange(process.paused, false)) {
      if (over && process.paused_by.fault == Fault::kClockJump) {
        Die(process, {true, 9});
      } else {
        DrainBacklog(process);
      }
    }
    process.no_dial = process.no_answer = {};
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    WakeAgent(static_cast<int>(i));
  }
  WakeServer();
}

// Training gets on, or the status names what it waits for.
void Sim::CheckGoesOn() {
  if (!server_.core || job_ended_) {
    return;
  }
  const JobView view = server_.core->View(now_);
  const bool stands = view.state == JobState::kStarting || view.state == JobState::kEntering ||
                      view.state == JobState::kReforming;
  if (stands && view.wait.reason == WaitReason::kNone) {
    Violate("G18 the job stands still and names no reason");
  }
  if (view.state != JobState::kRunning) {
    committed_at_ = now_;
  } else if (now_ > committed_at_ + kStandstillMax) {
    Violate(StrCat("G18 all have entered generation ", ToString(view.generation.number),
                   ", and nothing was committed for ", FormatDuration(kStandstillMax)));
  }
}

// Once the faults have stopped a job ends with success, or for a reason that its state gives.
void Sim::CheckEnd() {
  Count(StrCat("end: exit ", result_.exit_code));
  if (!result_.violations.empty()) {
    return;
  }
  if (!job_ended_) {
    const std::string wait =
        server_.core ? server_.core->View(now_).wait_text : std::string("no server");
    result_.outcome = "waits: " + wait;
    Violate("G19 the job does not end after the faults stopped; " + result_.outcome);
    return;
  }
  if (!Quiet()) {
    Violate("G17 the job has ended, but processes of it are left");
  }
  if (result_.exit_code == static_cast<int>(JobExit::kFinished)) {
    return;
  }
  if (result_.exit_code == static_cast<int>(JobExit::kStateLost) && !state_reachable_) {
    return;
  }
  if (result_.outcome.find("before joining") != std::string::npos) {
    return;  // the first round was killed by us before anybody joined
  }
  Violate(StrCat("G19 the job ended with exit code ", result_.exit_code, ": ", result_.outcome));
}

Result RunOnce(const Options& options) {
  Result all = Sim(options).Run();
  Options next = options;
  while (all.events < kEventsMin && all.violations.empty()) {
    next.seed = HashMix(next.seed, options.seed);
    Result one = Sim(next).Run();
    one.trace = HashMix(all.trace, one.trace);
    one.events += all.events;
    for (const auto& [what, count] : all.counts) {
      one.counts[what] += count;
    }
    for (size_t fault = 0; fault < kFaults; ++fault) {
      for (size_t stage = 0; stage < kStages; ++stage) {
        one.coverage[fault][stage] += all.coverage[fault][stage];
      }
    }
    all = std::move(one);
  }
  return all;
}

}  // namespace elastic::internal::sim
