#include "launcher/agent/output_pump.h"

#include <poll.h>

#include <algorithm>

#include "launcher/agent/agent_limits.h"

namespace elastic::internal {

OutputPump::OutputPump(int output_fd, int errors_fd, const std::string& host)
    : relay_({.output_fd = output_fd,
              .errors_fd = errors_fd,
              .name = "elastic-agent " + host,
              .line_bytes_max = kOutputLineBytesMax,
              .write_limit = kOutputDrainLimit}) {}

OutputPump::~OutputPump() { Finish(Duration(0)); }

void OutputPump::Add(WorkerIncarnation incarnation, std::string text, UniqueFd output,
                     UniqueFd errors) {
  std::erase_if(labels_, [](const auto& entry) { return entry.second.expired(); });
  const auto label = std::make_shared<Label>();
  labels_[incarnation] = label;
  SetLabel(incarnation, std::move(text));
  const auto prefix = [label](const char* stream) {
    MutexLock lock(label->mutex);
    return StrCat('[', label->text, ']', stream);
  };
  relay_.AddSource(std::move(output), OutputRelay::Target::kOutput,
                   [prefix] { return prefix("<stdout>:"); });
  relay_.AddSource(std::move(errors), OutputRelay::Target::kErrors,
                   [prefix] { return prefix("<stderr>:"); });
}

void OutputPump::SetLabel(WorkerIncarnation incarnation, std::string text) {
  const auto found = labels_.find(incarnation);
  const auto label = found == labels_.end() ? nullptr : found->second.lock();
  if (label != nullptr) {
    MutexLock lock(label->mutex);
    label->text = std::move(text);
  }
}

void OutputPump::Finish(Duration limit) {
  relay_.Close(limit);
  pollfd finished{relay_.finished_fd(), POLLIN, 0};
  while (poll(&finished, 1, -1) != 1) {
  }
}

}  // namespace elastic::internal
