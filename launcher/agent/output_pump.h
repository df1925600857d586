#pragma once

#include <map>
#include <memory>
#include <string>

#include "launcher/base/output_relay.h"
#include "rendezvous/base/ids.h"

namespace elastic::internal {

// The workers' output with a label in front of each line, which changes with the worker's rank;
// also this agent's own log lines, so that they never run into others.
class OutputPump {
 public:
  // Lines are written to these descriptors, which outlive the pump.
  OutputPump(int output_fd, int errors_fd, const std::string& host);
  ~OutputPump();  // Finish(0) if it was not called

  // Lines come out as `[label]<stdout>:text`, as Horovod writes them. Both: from one thread.
  void Add(WorkerIncarnation incarnation, std::string label, UniqueFd output, UniqueFd errors);
  // From the next line on.
  void SetLabel(WorkerIncarnation incarnation, std::string label);
  // A line of the agent itself, to standard error. From any thread; never waits.
  void Say(Severity severity, std::string_view text) { relay_.Say(severity, text); }
  // Waits until all streams have ended, at most `limit`, and until what came is written, at most
  // kOutputDrainLimit.
  void Finish(Duration limit);

 private:
  struct Label {
    Mutex mutex;
    std::string text GUARDED_BY(mutex);
  };

  // Owned by the two streams of the worker, on the relay's thread: gone when they have ended.
  std::map<WorkerIncarnation, std::weak_ptr<Label>> labels_;
  OutputRelay relay_;
};

}  // namespace elastic::internal
