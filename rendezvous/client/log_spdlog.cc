#include "rendezvous/client/log_spdlog.h"

// The only file that sees spdlog: it takes four seconds to compile. Debian has no static spdlog or
// fmt, so both are used from their headers.
#define SPDLOG_FMT_EXTERNAL
#define FMT_HEADER_ONLY
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace elastic::internal {

namespace {

spdlog::level::level_enum LevelOf(Severity severity) {
  switch (severity) {
    case Severity::kDebug: return spdlog::level::debug;
    case Severity::kInfo: return spdlog::level::info;
    case Severity::kWarning: return spdlog::level::warn;
    case Severity::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void InstallSpdlogSink(Severity threshold, const std::string& program_name) {
  auto logger = std::make_shared<spdlog::logger>(
      program_name, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %n [%^%l%$] %v");
  logger->set_level(spdlog::level::debug);  // our threshold has already decided
  SetLogSink(
      [logger = std::move(logger)](Severity severity, std::string_view line) {
        logger->log(LevelOf(severity), spdlog::string_view_t(line.data(), line.size()));
      },
      threshold);
}

}  // namespace elastic::internal
