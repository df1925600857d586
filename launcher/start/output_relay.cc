#include "launcher/start/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kLineBytesMax = 1u << 20;
constexpr size_t kSaidMax = 10'000;

int PollMilliseconds(Duration left) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(milliseconds, 0, 60'000));
}

}  // namespace

OutputRelay::OutputRelay(int output_fd, int errors_fd)
    : output_fd_(output_fd),
      errors_fd_(errors_fd),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      finished_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ELASTIC_CHECK(wake_.valid() && finished_.valid());
  thread_ = std::thread([this] { Run(); });
}

OutputRelay::~OutputRelay() {
  Close(Duration::zero());
  thread_.join();
}

void OutputRelay::AddSource(UniqueFd source, Target target) {
  fcntl(source.get(), F_SETFL, fcntl(source.get(), F_GETFL) | O_NONBLOCK);
  {
    MutexLock lock(mutex_);
    inbox_.sources.push_back({std::move(source), target, LineSplitter(kLineBytesMax)});
  }
  Wake();
}

void OutputRelay::Say(std::string line) {
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
    if (inbox_.closed) {
      return;
    }
    inbox_.closed = true;
    inbox_.until = Now() + limit;
  }
  Wake();
}

void OutputRelay::Wake() { eventfd_write(wake_.get(), 1); }

void OutputRelay::Run() {
  prctl(PR_SET_NAME, "elastic-output");
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
    Write(source.target, source.lines.Finish());
  }
  sources_.clear();
  eventfd_write(finished_.get(), 1);
}

bool OutputRelay::WaitForInput(std::vector<size_t>& readable) {
  if (closed_ && (sources_.empty() || Now() >= until_)) {
    return false;
  }
  std::vector<pollfd> polled;
  polled.reserve(sources_.size() + 1);
  for (const Source& source : sources_) {
    polled.push_back({source.fd.get(), POLLIN, 0});
  }
  polled.push_back({wake_.get(), POLLIN, 0});
  poll(polled.data(), polled.size(), closed_ ? PollMilliseconds(until_ - Now()) : -1);
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
  Inbox taken;
  {
    MutexLock lock(mutex_);
    taken.sources = std::exchange(inbox_.sources, {});
    taken.said = std::exchange(inbox_.said, {});
    taken.dropped = std::exchange(inbox_.dropped, 0);
    closed_ = inbox_.closed;
    until_ = inbox_.until;
  }
  std::ranges::move(taken.sources, std::back_inserter(sources_));
  std::string lines;
  for (const std::string& line : taken.said) {
    lines += line + '\n';
  }
  if (taken.dropped > 0) {
    lines += StrCat("elastic-run: ", taken.dropped, " lines of its own were left out here\n");
  }
  Write(Target::kErrors, lines);
}

void OutputRelay::Read(Source& source) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = read(source.fd.get(), bytes.data(), bytes.size());
  if (count > 0) {
    Write(source.target, source.lines.Add({bytes.data(), static_cast<size_t>(count)}));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    Write(source.target, source.lines.Finish());
    source.fd.Reset();
  }
}

void OutputRelay::Write(Target target, std::string_view bytes) {
  const int fd = target == Target::kOutput ? output_fd_ : errors_fd_;
  bool& broken = target == Target::kOutput ? output_broken_ : errors_broken_;
  while (!bytes.empty() && !broken) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd polled{fd, POLLOUT, 0};
      poll(&polled, 1, -1);
    } else if (errno != EINTR) {
      // The reader is gone (`| head`): training goes on, only its text has nowhere to go.
      broken = true;
      if (target == Target::kOutput) {
        Write(Target::kErrors,
              "elastic-run: standard output is closed, the workers' lines are dropped from here\n");
      }
    }
  }
}

}  // namespace elastic::internal
