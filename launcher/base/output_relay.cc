#include "launcher/base/output_relay.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

namespace {

constexpr size_t kReadBytes = 64u << 10;  // what a pipe holds
constexpr size_t kSaidMax = 10'000;

std::string_view Mark(Severity severity) {
  switch (severity) {
    case Severity::kWarning: return "warning: ";
    case Severity::kError: return "error: ";
    case Severity::kDebug:
    case Severity::kInfo: break;
  }
  return "";
}

int MillisecondsUntil(std::optional<Instant> until) {
  return until ? PollMilliseconds(*until - Now()) : -1;
}

}  // namespace

OutputRelay::OutputRelay(Options options)
    : options_(std::move(options)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      finished_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ELASTIC_CHECK(wake_.valid() && finished_.valid());
  thread_ = std::thread([this] { Run(); });
}

OutputRelay::~OutputRelay() {
  Close(Duration::zero());
  thread_.join();
}

void OutputRelay::AddSource(UniqueFd source, Target target, Prefix prefix) {
  fcntl(source.get(), F_SETFL, fcntl(source.get(), F_GETFL) | O_NONBLOCK);
  {
    MutexLock lock(mutex_);
    inbox_.sources.push_back(
        {std::move(source), target, std::move(prefix), LineSplitter(options_.line_bytes_max)});
  }
  Wake();
}

std::string OutputRelay::OwnLine(Severity severity, std::string_view text) const {
  return StrCat(WallTimeText(), ' ', options_.name, ": ", Mark(severity), text, '\n');
}

void OutputRelay::Say(Severity severity, std::string_view text) {
  std::string line = OwnLine(severity, text);
  {
    MutexLock lock(mutex_);
    if (inbox_.said.size() < kSaidMax) {
      inbox_.said.push_back(std::move(line));
    } else {
      ++inbox_.dropped;
    }
  }
  Wake();
}

void OutputRelay::Close(Duration limit) {
  {
    MutexLock lock(mutex_);
    if (inbox_.end.reading) {
      return;
    }
    const Instant now = Now();
    inbox_.end.reading = now + limit;
    if (options_.write_limit) {
      inbox_.end.writing = now + std::max(limit, *options_.write_limit);
    }
  }
  Wake();
}

void OutputRelay::Wake() { eventfd_write(wake_.get(), 1); }

void OutputRelay::Run() {
  prctl(PR_SET_NAME, "elastic-output");
  static_cast<void>(ResetSlice());  // not urgent, and it may have much to copy
  std::vector<size_t> readable;
  while (WaitForInput(readable)) {
    TakeInbox();
    for (const size_t index : readable) {
      Read(sources_[index]);
    }
    std::erase_if(sources_, [](const Source& source) { return !source.fd.valid(); });
  }
  TakeInbox();
  for (Source& source : sources_) {
    Read(source);  // what is in the pipe; nobody waits for more
    WriteLines(source, source.lines.Finish());
  }
  sources_.clear();
  eventfd_write(finished_.get(), 1);
}

bool OutputRelay::WaitForInput(std::vector<size_t>& readable) {
  if (end_.reading && !inbox_waits_ && (sources_.empty() || Now() >= *end_.reading)) {
    return false;
  }
  std::vector<pollfd> polled;
  polled.reserve(sources_.size() + 1);
  for (const Source& source : sources_) {
    polled.push_back({source.fd.get(), POLLIN, 0});
  }
  polled.push_back({wake_.get(), POLLIN, 0});
  poll(polled.data(), polled.size(), inbox_waits_ ? 0 : MillisecondsUntil(end_.reading));
  readable.clear();
  for (size_t index = 0; index < sources_.size(); ++index) {
    if (polled[index].revents != 0) {
      readable.push_back(index);
    }
  }
  return true;
}

void OutputRelay::TakeInbox() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  inbox_waits_ = false;
  Inbox taken;
  {
    MutexLock lock(mutex_);
    std::swap(taken, inbox_);
    inbox_.end = end_ = taken.end;
  }
  std::ranges::move(taken.sources, std::back_inserter(sources_));
  std::string lines;
  for (const std::string& line : taken.said) {
    lines += line;
  }
  if (taken.dropped > 0) {
    lines += OwnLine(Severity::kWarning, StrCat(taken.dropped,
                                                " lines of its own were left out here because this "
                                                "output is read too slowly"));
  }
  Write(Target::kErrors, lines);
}

void OutputRelay::Read(Source& source) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = read(source.fd.get(), bytes.data(), bytes.size());
  if (count > 0) {
    WriteLines(source, source.lines.Add({bytes.data(), static_cast<size_t>(count)}));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    WriteLines(source, source.lines.Finish());
    source.fd.Reset();
  }
}

void OutputRelay::WriteLines(const Source& source, std::string_view lines) {
  if (source.prefix == nullptr || lines.empty()) {
    Write(source.target, lines);
    return;
  }
  const std::string prefix = source.prefix();
  std::string text;
  while (!lines.empty()) {
    const size_t length = lines.find('\n') + 1;  // every line is ended
    text += prefix;
    text += lines.substr(0, length);
    lines.remove_prefix(length);
  }
  Write(source.target, text);
}

void OutputRelay::Write(Target target, std::string_view bytes) {
  const int fd = target == Target::kOutput ? options_.output_fd : options_.errors_fd;
  const bool& broken = broken_[target == Target::kErrors];
  while (!bytes.empty() && !broken && AwaitRoom(fd)) {
    // A pipe that polls writable takes PIPE_BUF bytes without waiting.
    const ssize_t count = write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      HandleBroken(target, errno);
    }
  }
}

// Waited for here and not in write, so that Close can end it; false when its time is up.
bool OutputRelay::AwaitRoom(int fd) {
  for (;;) {
    pollfd polled[] = {{fd, POLLOUT, 0}, {wake_.get(), POLLIN, 0}};
    poll(polled, 2, MillisecondsUntil(end_.writing));
    if (polled[0].revents != 0) {
      return true;
    }
    if (end_.writing && Now() >= *end_.writing) {
      return false;
    }
    eventfd_t ignored = 0;
    if (eventfd_read(wake_.get(), &ignored) == 0) {
      inbox_waits_ = true;
      MutexLock lock(mutex_);
      end_ = inbox_.end;
    }
  }
}

// The reader is gone (`| head`) or takes no more (a full disk): training goes on, only its text has
// nowhere to go.
void OutputRelay::HandleBroken(Target target, int error) {
  broken_[target == Target::kErrors] = true;
  if (target == Target::kOutput) {
    Write(Target::kErrors,
          OwnLine(Severity::kWarning,
                  StrCat("standard output cannot be written any more (", std::strerror(error),
                         "): the workers' lines are dropped from here on")));
  }
}

}  // namespace elastic::internal
