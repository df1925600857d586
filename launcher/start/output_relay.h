#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "launcher/start/line_splitter.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/time.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The one writer of a launcher's standard output and error: lines of all agents and the launcher's
// own, each whole. A thread of its own, because a reader that is slow (a pager, a paused terminal)
// must hold up the writers of output and nobody else: pipes fill up behind it and no line is lost,
// while Say() never waits.
class OutputRelay {
 public:
  enum class Target { kOutput, kErrors };

  // The descriptors must outlive the relay.
  OutputRelay(int output_fd, int errors_fd);
  ~OutputRelay();  // Close(0) if it was not called; waits for the thread

  // Copies the stream line by line until its end. From any thread.
  void AddSource(UniqueFd source, Target target);
  // One line without its newline for the error output. From any thread; never blocks. Beyond
  // kSaidMax waiting lines the newest are counted instead of kept.
  void Say(std::string line);
  // Nothing is added any more: the thread ends when all streams have ended, or after `limit`.
  void Close(Duration limit);
  // Becomes readable when the thread has written everything and ended.
  int finished_fd() const { return finished_.get(); }

 private:
  struct Source {
    UniqueFd fd;
    Target target;
    LineSplitter lines;
  };
  struct Inbox {
    std::vector<Source> sources;
    std::deque<std::string> said;
    size_t dropped = 0;
    bool closed = false;
    Instant until;
  };

  void Run();
  // Waits for input; false when the relay is closed and has nothing left to wait for.
  bool WaitForInput(std::vector<size_t>& readable);
  void TakeInbox();
  void Read(Source& source);
  void Write(Target target, std::string_view bytes);
  void Wake();

  const int output_fd_;
  const int errors_fd_;
  UniqueFd wake_;
  UniqueFd finished_;

  // Of the thread alone.
  std::vector<Source> sources_;
  bool closed_ = false;
  Instant until_;
  bool output_broken_ = false;
  bool errors_broken_ = false;

  Mutex mutex_;
  Inbox inbox_ GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace elastic::internal
