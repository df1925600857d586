#include "rendezvous/server/little_agent.h"

#include <algorithm>
#include <utility>

#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

constexpr std::chrono::seconds kWaitMax{10};
constexpr uint16_t kDataPort = 4000;
constexpr int32_t kSigkill = 9;

// Members of one generation all commit once, so that equal versions have equal digests.
Held CommittedIn(GenerationNumber number) {
  return {.version = {number, 1}, .digest = number.value * 17u, .step = number.value};
}

}  // namespace

LittleAgent::LittleAgent(Options options) : options_(std::move(options)) {
  view_.report.host = options_.host;
  view_.report.copies = {"127.0.0.1", kDataPort};
  AgentLink::Callbacks callbacks;
  callbacks.registered = [this](AgentIncarnation agent, ServerIncarnation server) {
    MutexLock lock(mutex_);
    view_.agent = agent;
    ++view_.registrations;
    view_.report.agent = agent;
    view_.report.server = server;
    SendReport();
  };
  callbacks.directive = [this](Directive directive) {
    MutexLock lock(mutex_);
    Apply(directive);
    view_.directive = std::move(directive);
    SendReport();
  };
  callbacks.lost = [this](const Status& /*status*/) {
    MutexLock lock(mutex_);
    ++view_.losses;
    changed_.notify_all();
  };
  callbacks.refused = [this](Status status) {
    MutexLock lock(mutex_);
    view_.refused = std::move(status);
    changed_.notify_all();
  };
  // Callbacks wait here until link_ is set.
  MutexLock lock(mutex_);
  link_ = std::make_unique<AgentLink>(AgentLink::Options{.server = options_.server,
                                                         .host = options_.host,
                                                         .slots = options_.slots,
                                                         .job_id = options_.job_id},
                                      std::move(callbacks));
  beater_ = std::thread([this] { Beat(); });
}

LittleAgent::~LittleAgent() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  beater_.join();
  link_.reset();
}

void LittleAgent::Beat() {
  MutexLock lock(mutex_);
  Instant next = Now() + options_.beat_interval;
  while (!stopping_) {
    const Duration left = next - Now();
    if (left > Duration::zero()) {
      changed_.wait_for(mutex_, left);
      continue;
    }
    next = Now() + options_.beat_interval;
    if (view_.registrations > 0) {
      SendReport();
    }
  }
}

void LittleAgent::KillWorker(int32_t slot) {
  MutexLock lock(mutex_);
  for (WorkerReport& worker : view_.report.workers) {
    if (worker.slot == slot && worker.life != WorkerLife::kDead) {
      worker.life = WorkerLife::kDead;
      worker.word.fenced = true;
      worker.cause = DeathCause::kExited;
      worker.exit = ExitStatus{.signalled = true, .code = kSigkill};
    }
  }
  SendReport();
}

void LittleAgent::FinishWorkers() {
  MutexLock lock(mutex_);
  finishing_ = true;
  for (WorkerReport& worker : view_.report.workers) {
    if (worker.life == WorkerLife::kMember) {
      worker.finished = worker.held;
      worker.phase = Phase::kFinished;
    }
  }
  SendReport();
}

bool LittleAgent::WaitFor(const std::function<bool(const View&)>& condition) {
  MutexLock lock(mutex_);
  const Instant limit = Now() + kWaitMax;
  while (!condition(view_)) {
    const Duration left = limit - Now();
    if (left <= Duration::zero()) {
      return false;
    }
    changed_.wait_for(mutex_, left);
  }
  return true;
}

LittleAgent::View LittleAgent::Look() {
  MutexLock lock(mutex_);
  return view_;
}

void LittleAgent::Apply(const Directive& directive) {
  AgentReport& report = view_.report;
  report.acked_directive = directive.sequence;
  report.closed = std::max(report.closed, directive.closed);
  report.marks = directive.marks;
  std::erase_if(report.workers, [&](const WorkerReport& worker) {
    return std::ranges::find(directive.forget, worker.incarnation) != directive.forget.end();
  });
  for (WorkerReport& worker : report.workers) {
    worker.word.fenced = worker.word.fenced || worker.word.generation <= report.closed;
    const bool finished = directive.finished.has_value();
    const bool stops =
        directive.stop == StopMode::kGraceful || directive.stop == StopMode::kImmediate || finished;
    if (worker.life != WorkerLife::kDead && stops) {
      worker.life = WorkerLife::kDead;
      worker.released = finished && directive.installed->Find(worker.incarnation) == nullptr;
      worker.cause = DeathCause::kExited;
      worker.exit = ExitStatus{};
    }
  }
  if (directive.installed.has_value()) {
    Enter(*directive.installed);
    report.installed = directive.installed->id;
  }
  if (directive.prepared.has_value()) {
    Enter(*directive.prepared);
    report.prepared = directive.prepared->id;
  }
  for (int32_t slot : directive.slots) {
    const bool taken = std::ranges::any_of(report.workers, [&](const WorkerReport& worker) {
      return worker.slot == slot && worker.life != WorkerLife::kDead;
    });
    if (!taken && directive.spawn_allowed) {
      Spawn(slot);
    }
  }
}

void LittleAgent::Spawn(int32_t slot) {
  view_.report.workers.push_back({.incarnation = {view_.agent, ++spawned_},
                                  .slot = slot,
                                  .pid = 1000 + spawned_,
                                  .life = WorkerLife::kWaiting,
                                  .joined = true,
                                  .data = {"127.0.0.1", kDataPort},
                                  .phase = Phase::kWaiting});
}

void LittleAgent::Enter(const Roster& roster) {
  if (roster.id.number <= view_.report.closed) {
    return;
  }
  for (WorkerReport& worker : view_.report.workers) {
    if (worker.life == WorkerLife::kDead || roster.Find(worker.incarnation) == nullptr ||
        worker.word.generation >= roster.id.number) {
      continue;
    }
    const GenerationNumber before =
        roster.resume.valid() ? roster.resume.version.generation : roster.parent;
    worker.held = before.value != 0 ? CommittedIn(before) : CommittedIn(roster.id.number);
    worker.life = WorkerLife::kMember;
    worker.word = {.generation = roster.id.number,
                   .commits = worker.held.version.generation == roster.id.number ? 1u : 0u};
    worker.generation = roster.id;
    worker.entered = true;
    worker.phase = Phase::kOutside;
  }
}

void LittleAgent::SendReport() {
  ++view_.report.sequence;
  if (!stopping_) {  // else the link is being taken down, and this callback is its last
    link_->Send(view_.report);
  }
  changed_.notify_all();
}

}  // namespace elastic::internal
