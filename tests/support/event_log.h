#pragma once

#include <cstdint>
#include <string>

namespace elastic::internal::testing {

// CLOCK_BOOTTIME in nanoseconds, the clock of the runtime's own stamps.
int64_t BootNanoseconds();

// A file of lines, each written by one write(2) before the call returns: what a worker logged
// survives its SIGKILL, which is the point. Without a folder it drops everything.
class EventLog {
 public:
  // Makes `<folder>/<pid>.log`.
  explicit EventLog(const std::string& folder);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void Write(const std::string& line);
  // Async-signal-safe: `word` and the time.
  void WriteFromSignal(const char* word);

 private:
  int fd_ = -1;
};

}  // namespace elastic::internal::testing
