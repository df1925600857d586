#pragma once

#include <string>

#include "launcher/base/output_relay.h"
#include "launcher/cli/job_signals.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

// elastic-run's own lines, with time and severity, among those of the workers. While it lives it is
// also the sink of the log interface.
class Console {
 public:
  explicit Console(Severity threshold);
  ~Console();

  // From any thread; never waits for the terminal.
  void Say(Severity severity, std::string_view text);
  OutputRelay& relay() { return relay_; }
  // Waits until the workers' last lines and ours are written. A signal, or agents' pipes that stay
  // open, end the wait: then the rest is lost and the process is left at once with `exit_code`.
  void Finish(JobSignals& signals, int exit_code);

 private:
  const Severity threshold_;
  OutputRelay relay_;
};

}  // namespace elastic::internal
