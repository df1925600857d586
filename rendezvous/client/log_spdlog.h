#pragma once

#include <string>

#include "rendezvous/base/log.h"

namespace elastic::internal {

// Sends the log to stderr as `12:00:00.123 program [warning] text`, coloured on a terminal. Call
// before threads start.
void InstallSpdlogSink(Severity threshold, const std::string& program_name);

}  // namespace elastic::internal
