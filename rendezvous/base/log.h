#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <string_view>

namespace elastic::internal {

enum class Severity { kDebug, kInfo, kWarning, kError };

// Receives one finished line without its newline; called from any thread, one call at a time.
using LogSink = std::function<void(Severity, std::string_view)>;

// Where log lines go. Without a sink they are dropped: libelastic prints nothing of its own.
// Call before threads start.
void SetLogSink(LogSink sink, Severity threshold);
bool LogEnabled(Severity severity);
void WriteLog(Severity severity, std::string_view line);

// Joins its arguments with operator<<.
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
void Log(Severity severity, const Parts&... parts) {
  if (LogEnabled(severity)) {
    WriteLog(severity, StrCat(parts...));
  }
}
template <class... Parts>
void LogInfo(const Parts&... parts) {
  Log(Severity::kInfo, parts...);
}
template <class... Parts>
void LogWarning(const Parts&... parts) {
  Log(Severity::kWarning, parts...);
}
template <class... Parts>
void LogError(const Parts&... parts) {
  Log(Severity::kError, parts...);
}
template <class... Parts>
void LogDebug(const Parts&... parts) {
  Log(Severity::kDebug, parts...);
}

}  // namespace elastic::internal
