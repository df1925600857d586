// The snapshot that the server gets (P24).
#include <algorithm>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

namespace {

// Reports whose acknowledgement is still awaited; beyond it the oldest are given up, which only
// makes the deadline earlier.
constexpr size_t kUnacknowledgedMax = 16384;

WorkerLife LifeOf(const AgentWorker& worker) {
  if (worker.dead) {
    return WorkerLife::kDead;
  }
  if (worker.word().generation.value != 0) {
    return WorkerLife::kMember;
  }
  return worker.ready ? WorkerLife::kWaiting : WorkerLife::kStarting;
}

WorkerReport ReportOf(const AgentWorker& worker, Instant now) {
  const PageReading& reading = worker.reading;
  WorkerReport report;
  report.incarnation = worker.incarnation;
  report.slot = worker.slot;
  report.pid = worker.pid;
  report.life = LifeOf(worker);
  if (reading.word.generation.value != 0) {
    report.word = reading.word;
    report.generation = reading.generation;
    report.entered = worker.entered == reading.generation;
    if (worker.finished_in == reading.generation) {
      report.finished = worker.finished;
    }
    std::ranges::copy_if(
        worker.accusations, std::back_inserter(report.accusations),
        [&](const Accusation& entry) { return entry.generation == reading.generation; });
  }
  report.program_error = worker.program_error;
  report.held = reading.held;
  report.joined = worker.ready;
  report.data = worker.data;
  report.phase = reading.phase;
  report.beat_age = std::max(now - worker.beat_at, Duration{0});
  report.cause = worker.dead ? worker.cause : DeathCause::kUnspecified;
  report.exit = worker.exit;
  report.released = worker.released;
  return report;
}

// A server may be new, and all that is left of its predecessor's record be here (P1).
std::optional<Memory> MemoryOf(const AgentCore::State& state) {
  Memory memory;
  const auto present = state.rosters.find(state.installed.number);
  const bool entered =
      present != state.rosters.end() && present->second.kind == GenerationKind::kPrepared;
  const GenerationNumber oldest = entered ? present->second.parent : state.installed.number;
  for (auto at = state.rosters.lower_bound(oldest); at != state.rosters.end(); ++at) {
    memory.rosters.push_back(at->second);
  }
  memory.finished = state.finished;
  memory.told_all = state.told_all;
  if (!state.stop_reason.empty()) {
    memory.stop = state.stop;
    memory.stop_reason = state.stop_reason;
    memory.stop_exit_code = state.stop_exit_code;
  }
  return memory == Memory{} ? std::nullopt : std::optional(std::move(memory));
}

}  // namespace

AgentReport AgentCore::MakeReport(Instant now) {
  State& state = *state_;
  state.now = std::max(state.now, now);
  AgentReport report;
  report.host = state.settings.host;
  report.agent = state.agent;
  report.sequence = ++state.report_sequence;
  report.acked_directive = state.acked_directive;
  report.installed = state.installed;
  report.prepared = state.prepared;
  report.closed = state.closed;
  report.marks.assign(state.marks.begin(), state.marks.end());
  report.copies = state.copies;
  report.spawn_error = state.spawn_error;
  report.server = state.server;
  if (state.acked_report == 0) {
    report.memory = MemoryOf(state);
  }
  bool empty = true;
  for (auto& [incarnation, worker] : state.workers) {
    empty = empty && !worker.running();
    if (worker.reaped && worker.exit_told == 0) {
      worker.exit_told = report.sequence;
    }
    if (worker.spawned) {
      report.workers.push_back(ReportOf(worker, state.now));
    }
  }
  if (!empty) {
    state.empty_report = 0;
  } else if (state.empty_report == 0) {
    state.empty_report = report.sequence;
  }
  state.store.FillReport(report);
  state.store.Reported();
  state.sent.emplace(report.sequence, state.now);
  if (state.sent.size() > kUnacknowledgedMax) {
    state.sent.erase(state.sent.begin());
  }
  state.report_asked = false;
  state.next_beat = state.now + kAgentBeatInterval;
  return report;
}

}  // namespace elastic::internal
