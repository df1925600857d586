#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/base/line_splitter.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/time.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// The one writer of a program's standard output and error: lines of many streams and the program's
// own, each whole. elastic-run has one for all agents, each agent one for its workers. A thread of
// its own, because a reader that is slow (a pager, a paused terminal) must hold up the writers of
// output and nobody else: pipes fill up behind it and no line is lost, while Say() never waits.
class OutputRelay {
 public:
  enum class Target { kOutput, kErrors };
  // What comes before each line of a source, asked for again with every piece that arrives. Called
  // on the relay's thread.
  using Prefix = std::function<std::string()>;

  struct Options {
    int output_fd = -1;  // both must outlive the relay
    int errors_fd = -1;
    std::string name;  // of the program, in its own lines
    size_t line_bytes_max = 1u << 20;
    // After Close a reader that does not read may hold up the end for this long; absent: without
    // a limit, so that no line is lost.
    std::optional<Duration> write_limit;
  };
  explicit OutputRelay(Options options);
  ~OutputRelay();  // Close(0) if it was not called; waits for the thread
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // Copies the stream line by line until its end. From any thread.
  void AddSource(UniqueFd source, Target target, Prefix prefix = nullptr);
  // One line of the program itself, with time and name, for the error output. From any thread;
  // never blocks. Beyond kSaidMax waiting lines the newest are counted instead of kept.
  void Say(Severity severity, std::string_view text);
  // Nothing is added any more: the thread ends when all streams have ended, or after `limit`; what
  // was said, and what has come of streams that are still open, is written in both cases.
  void Close(Duration limit);
  // Becomes readable when the thread has written everything and ended.
  int finished_fd() const { return finished_.get(); }

 private:
  struct Source {
    UniqueFd fd;
    Target target;
    Prefix prefix;
    LineSplitter lines;
  };
  // When the thread is to end; both absent: not yet.
  struct End {
    std::optional<Instant> reading;  // of streams that are still open
    std::optional<Instant> writing;  // to a reader that does not read
  };
  struct Inbox {
    std::vector<Source> sources;
    std::deque<std::string> said;
    size_t dropped = 0;
    End end;
  };

  std::string OwnLine(Severity severity, std::string_view text) const;
  void Run();
  // Waits for input; false when the relay is closed and has nothing left to wait for.
  bool WaitForInput(std::vector<size_t>& readable);
  void TakeInbox();
  void Read(Source& source);
  void WriteLines(const Source& source, std::string_view lines);
  void Write(Target target, std::string_view bytes);
  bool AwaitRoom(int fd);
  void HandleBroken(Target target, int error);
  void Wake();

  const Options options_;
  UniqueFd wake_;
  UniqueFd finished_;

  // Of the thread alone.
  std::vector<Source> sources_;
  End end_;
  bool inbox_waits_ = false;  // its wake was taken while a slow reader was waited for
  std::array<bool, 2> broken_{};

  Mutex mutex_;
  Inbox inbox_ GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace elastic::internal
