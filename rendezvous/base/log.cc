#include "rendezvous/base/log.h"

#include <atomic>
#include <utility>

#include "rendezvous/base/mutex.h"

namespace elastic::internal {

namespace {

struct LogState {
  Mutex mutex;
  LogSink sink GUARDED_BY(mutex);
  std::atomic<int> threshold{static_cast<int>(Severity::kError) + 1};
};

// Never destroyed: threads may log while the process ends.
LogState& State() {
  static auto* state = new LogState;
  return *state;
}

}  // namespace

void SetLogSink(LogSink sink, Severity threshold) {
  LogState& state = State();
  MutexLock lock(state.mutex);
  state.sink = std::move(sink);
  state.threshold = static_cast<int>(threshold);
}

bool LogEnabled(Severity severity) {
  return static_cast<int>(severity) >= State().threshold.load(std::memory_order_relaxed);
}

void WriteLog(Severity severity, std::string_view line) {
  LogState& state = State();
  MutexLock lock(state.mutex);
  if (state.sink) {
    state.sink(severity, line);
  }
}

}  // namespace elastic::internal
