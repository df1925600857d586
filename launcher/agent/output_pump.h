#pragma once

#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "launcher/start/line_splitter.h"
#include "rendezvous/base/ids.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/time.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// Copies the workers' output, line by line with a label in front, to this agent's own standard
// output and error; also the agent's own log lines, so that they never run into others. A thread of
// its own, because a reader that is slow holds it up: then the workers' pipes fill and they wait,
// but nothing that watches over them does.
class OutputPump {
 public:
  // Lines are written to these descriptors, which outlive the pump.
  OutputPump(int output_fd, int errors_fd);
  ~OutputPump();  // Finish() if it was not called
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // Lines come out as `[label]<stdout>:text`, as Horovod writes them.
  void Add(WorkerIncarnation incarnation, std::string label, UniqueFd output, UniqueFd errors);
  // From the next line on.
  void SetLabel(WorkerIncarnation incarnation, std::string label);
  // A line of the agent itself, to standard error. Never waits; beyond kSaidLinesMax unwritten ones
  // it is counted instead of kept.
  void Say(std::string line);
  // Waits until all streams have ended and are written, at most `limit`, and ends the thread.
  void Finish(Duration limit);

 private:
  struct Stream {
    WorkerIncarnation incarnation;
    UniqueFd fd;
    bool errors = false;
    LineSplitter lines;
  };

  void Run();
  // Waits for input; false when there is nothing left to wait for.
  bool WaitForInput(std::vector<bool>& readable);
  void TakeNews();
  void Read(Stream& stream);
  void WriteLines(const Stream& stream, const std::string& lines);
  void Write(bool errors, const std::string& bytes);
  bool TimeIsUp();
  void Wake();

  const int output_fd_;
  const int errors_fd_;
  const UniqueFd wake_;

  // Of the thread alone.
  std::vector<Stream> streams_;
  bool broken_[2] = {false, false};

  Mutex mutex_;
  std::vector<Stream> added_ GUARDED_BY(mutex_);
  std::map<WorkerIncarnation, std::string> labels_ GUARDED_BY(mutex_);
  std::deque<std::string> said_ GUARDED_BY(mutex_);
  size_t unsaid_count_ GUARDED_BY(mutex_) = 0;
  bool finishing_ GUARDED_BY(mutex_) = false;
  Instant until_ GUARDED_BY(mutex_){};

  std::thread thread_;
};

}  // namespace elastic::internal
