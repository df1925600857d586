#include "launcher/agent/output_pump.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/agent/agent_limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

OutputPump::OutputPump(int output_fd, int errors_fd)
    : output_fd_(output_fd),
      errors_fd_(errors_fd),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

OutputPump::~OutputPump() { Finish(Duration(0)); }

void OutputPump::Add(WorkerIncarnation incarnation, std::string label, UniqueFd output,
                     UniqueFd errors) {
  fcntl(output.get(), F_SETFL, O_NONBLOCK);
  fcntl(errors.get(), F_SETFL, O_NONBLOCK);
  {
    MutexLock lock(mutex_);
    labels_[incarnation] = std::move(label);
    added_.push_back({incarnation, std::move(output), false, LineSplitter(kOutputLineBytesMax)});
    added_.push_back({incarnation, std::move(errors), true, LineSplitter(kOutputLineBytesMax)});
  }
  Wake();
}

void OutputPump::SetLabel(WorkerIncarnation incarnation, std::string label) {
  MutexLock lock(mutex_);
  const auto found = labels_.find(incarnation);
  if (found != labels_.end()) {
    found->second = std::move(label);
  }
}

void OutputPump::Say(std::string line) {
  {
    MutexLock lock(mutex_);
    if (said_.size() >= kSaidLinesMax) {
      ++unsaid_count_;
      return;
    }
    said_.push_back(std::move(line) + '\n');
  }
  Wake();
}

void OutputPump::Finish(Duration limit) {
  if (!thread_.joinable()) {
    return;
  }
  {
    MutexLock lock(mutex_);
    finishing_ = true;
    until_ = Now() + limit;
  }
  Wake();
  thread_.join();
}

void OutputPump::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void OutputPump::Run() {
  pthread_setname_np(pthread_self(), "el-output");
  static_cast<void>(ResetSlice());  // not urgent, and it may have much to copy
  std::vector<bool> readable;
  while (WaitForInput(readable)) {
    for (size_t i = 0; i < readable.size(); ++i) {
      if (readable[i]) {
        Read(streams_[i]);
      }
    }
    std::erase_if(streams_, [](const Stream& stream) { return !stream.fd.valid(); });
    TakeNews();
  }
}

bool OutputPump::WaitForInput(std::vector<bool>& readable) {
  std::vector<pollfd> polls = {{wake_.get(), POLLIN, 0}};
  for (const Stream& stream : streams_) {
    polls.push_back({stream.fd.get(), POLLIN, 0});
  }
  int timeout_ms = -1;
  {
    MutexLock lock(mutex_);
    if (finishing_) {
      const Duration left = until_ - Now();
      if ((streams_.empty() && added_.empty() && said_.empty()) || left <= Duration(0)) {
        return false;
      }
      timeout_ms = static_cast<int>(ToMilliseconds(left)) + 1;
    }
    if (!said_.empty()) {
      timeout_ms = 0;
    }
  }
  poll(polls.data(), polls.size(), timeout_ms);
  readable.clear();
  for (size_t i = 1; i < polls.size(); ++i) {
    readable.push_back(polls[i].revents != 0);
  }
  return true;
}

void OutputPump::TakeNews() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(wake_.get(), &count, sizeof count);
  std::deque<std::string> said;
  {
    MutexLock lock(mutex_);
    for (Stream& stream : added_) {
      streams_.push_back(std::move(stream));
    }
    added_.clear();
    said.swap(said_);
    if (unsaid_count_ > 0) {
      said.push_back(StrCat("elastic-agent: ", unsaid_count_,
                            " log lines were dropped because this output is read too slowly\n"));
      unsaid_count_ = 0;
    }
    std::erase_if(labels_, [&](const auto& label) {
      return std::none_of(streams_.begin(), streams_.end(),
                          [&](const Stream& stream) { return stream.incarnation == label.first; });
    });
  }
  for (const std::string& line : said) {
    Write(true, line);
  }
}

void OutputPump::Read(Stream& stream) {
  char buffer[16 << 10];
  const ssize_t bytes = read(stream.fd.get(), buffer, sizeof buffer);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (bytes <= 0) {
    WriteLines(stream, stream.lines.Finish());
    stream.fd.Reset();
    return;
  }
  WriteLines(stream, stream.lines.Add({buffer, static_cast<size_t>(bytes)}));
}

void OutputPump::WriteLines(const Stream& stream, const std::string& lines) {
  if (lines.empty()) {
    return;
  }
  std::string label;
  {
    MutexLock lock(mutex_);
    label = '[' + labels_[stream.incarnation] + (stream.errors ? "]<stderr>:" : "]<stdout>:");
  }
  std::string text;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin) + 1;  // every line is ended
    text += label;
    text.append(lines, begin, end - begin);
    begin = end;
  }
  Write(stream.errors, text);
}

bool OutputPump::TimeIsUp() {
  MutexLock lock(mutex_);
  return finishing_ && Now() >= until_;
}

void OutputPump::Write(bool errors, const std::string& bytes) {
  const int fd = errors ? errors_fd_ : output_fd_;
  for (size_t written = 0; written < bytes.size() && !broken_[errors];) {
    // Waited for here and not in write, so that Finish can end it; a pipe that polls writable takes
    // PIPE_BUF bytes without waiting.
    pollfd room{fd, POLLOUT, 0};
    if (poll(&room, 1, static_cast<int>(ToMilliseconds(kOutputPollInterval))) == 0) {
      if (TimeIsUp()) {
        return;
      }
      continue;
    }
    const size_t part = std::min<size_t>(bytes.size() - written, PIPE_BUF);
    const ssize_t count = write(fd, bytes.data() + written, part);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) {
      broken_[errors] = true;  // nobody reads any more; the workers must not stop for that
    }
  }
}

}  // namespace elastic::internal
