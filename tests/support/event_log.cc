#include "tests/support/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace elastic::internal::testing {

int64_t BootNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

EventLog::EventLog(const std::string& folder) {
  if (folder.empty()) {
    return;
  }
  const std::string path = folder + "/" + std::to_string(getpid()) + ".log";
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    std::perror(path.c_str());
    std::exit(65);
  }
}

EventLog::~EventLog() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void EventLog::Write(const std::string& line) {
  if (fd_ < 0) {
    return;
  }
  const std::string whole = line + "\n";
  if (write(fd_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    std::perror("event log");
    std::exit(65);
  }
}

void EventLog::WriteFromSignal(const char* word) {
  if (fd_ < 0) {
    return;
  }
  char text[64];
  size_t size = 0;
  for (; word[size] != '\0' && size < 32; ++size) {
    text[size] = word[size];
  }
  text[size++] = ' ';
  char digits[24];
  int count = 0;
  for (int64_t rest = BootNanoseconds(); rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) {
    text[size++] = digits[--count];
  }
  text[size++] = '\n';
  [[maybe_unused]] const ssize_t ignored = write(fd_, text, size);
}

}  // namespace elastic::internal::testing
