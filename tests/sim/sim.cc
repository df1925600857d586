#include "tests/sim/sim.h"

#include <algorithm>
#include <cstdio>

#include "rendezvous/base/hash.h"

namespace elastic::internal::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kEventsMax = 3'000'000;
constexpr size_t kViolationsMax = 5;

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
  steps_ = 5 + rng_.Below(50);
  journal_in_memory_ = rng_.Chance(1, 2);
  drop_percent_ = rng_.Chance(1, 2) ? static_cast<int>(rng_.Below(20)) : 0;
  duplicate_percent_ = rng_.Chance(1, 2) ? static_cast<int>(rng_.Below(20)) : 0;
  faults_left_ = options.faults >= 0 ? options.faults : static_cast<int>(rng_.Below(7));
  fault_odds_ = 30 + rng_.Below(600);
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
    if (++result_.events > kEventsMax) {
      Violate("G18 the run does not come to rest: " + std::to_string(kEventsMax) + " events");
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
  const Duration fault_phase = Between(500'000, 20'000'000);
  RunUntil(now_ + fault_phase);
  Heal();
  // Long enough for every wait that the protocol names, the elastic time-out included.
  RunUntil(now_ + 3 * spec_.elastic_timeout);
  CheckEnd();
  return std::move(result_);
}

// Faults stop, everything comes back; from now on the job must get on by itself.
void Sim::Heal() {
  Trace("heal");
  healing_ = true;
  faults_left_ = 0;
  drop_percent_ = duplicate_percent_ = 0;
  for (Host& host : hosts_) {
    host.cut_up = host.cut_down = false;
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.paused) {
      host.paused = false;
      for (auto& action : std::exchange(host.backlog, {})) {
        action();
      }
    }
  }
  for (auto& [id, process] : processes_) {
    if (process.paused) {
      process.paused = false;
      DrainBacklog(process);
    }
    process.no_dial_until = process.no_answer_until = {};
  }
  if (server_.paused) {
    server_.paused = false;
    for (auto& action : std::exchange(server_.backlog, {})) {
      action();
    }
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

Result RunOnce(const Options& options) { return Sim(options).Run(); }

}  // namespace elastic::internal::sim
