#include "worker_runtime/testing/cluster_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "worker_runtime/testing/program_image.h"

namespace elastic::testing {

namespace {

// The job has this long to end in order; its workers are told to at once.
constexpr Cluster::Limit kEndLimit{15000};
constexpr size_t kTailBytes = 4000;

Status Failed(const char* what) {
  return {Code::kInternal, std::string(what) + ": " + std::strerror(errno)};
}

Descriptor OpenProcess(pid_t pid) {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// The environment of the test without what makes a process a member of some job.
std::vector<std::string> CleanEnvironment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "ELASTIC_", 8) != 0) {
      result.emplace_back(*variable);
    }
  }
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

Status Cluster::Job::MakePipes() {
  const char* tmpdir = std::getenv("TMPDIR");
  folder_ = std::string(tmpdir != nullptr && *tmpdir != '\0' ? tmpdir : "/tmp") + "/etc-XXXXXX";
  if (mkdtemp(folder_.data()) == nullptr) {
    folder_.clear();
    return Failed("cannot make a folder for the test's pipe (TMPDIR)");
  }
  const std::string path = folder_ + "/said";
  // Opened for both directions, so that it does not end between two ranks.
  if (mkfifo(path.c_str(), 0600) != 0 ||
      (said_ = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK))).get() < 0) {
    return Failed("cannot make the test's pipe");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Failed("cannot make a pipe for the output of elastic-run");
  }
  output_ = Descriptor(ends[0]);
  output_writer_ = Descriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return wake_.get() >= 0 ? Status() : Failed("eventfd");
}

// Between fork and exec only what is safe in a program with threads.
void Cluster::Job::Spawn(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment) {
  const std::vector<char*> arguments = Pointers(command);
  const std::vector<char*> variables = Pointers(environment);
  const pid_t parent = getpid();
  // A signal that comes before exec must not run a handler of the test's in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  if (pid_ != 0) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  for (int number = 1; number < NSIG; ++number) {
    signal(number, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // A test that is killed takes its job with it. A session of its own: Ctrl-C reaches the test,
  // which ends the job.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setsid();
  if (getppid() != parent) {
    _exit(127);
  }
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output_writer_.get(), STDOUT_FILENO);
  dup2(output_writer_.get(), STDERR_FILENO);
  execve(arguments[0], arguments.data(), variables.data());
  constexpr char kText[] = "elastic-run cannot be executed\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(127);
}

Status Cluster::Job::Start(std::vector<std::string> command, const std::string& function) {
  ELASTIC_RETURN_IF_ERROR(MakePipes());
  std::vector<std::string> environment = CleanEnvironment();
  environment.push_back(std::string(kFunctionVariable) + '=' + function);
  environment.push_back(std::string(kPipeVariable) + '=' + folder_ + "/said");
  Spawn(command, environment);
  if (pid_ < 0) {
    return Failed("fork");
  }
  output_writer_ = Descriptor();
  process_ = OpenProcess(pid_);
  reader_ = std::thread([this] { Read(); });
  return {};
}

Cluster::Job::~Job() {
  // The second signal stops the workers at once.
  for (int signals = 0; pid_ > 0 && signals < 2 && !WaitUntilEnded(Limit(0)); ++signals) {
    kill(pid_, SIGTERM);
  }
  if (pid_ > 0 && !WaitUntilEnded(kEndLimit)) {
    kill(pid_, SIGKILL);
    WaitUntilEnded(kEndLimit);
  }
  if (reader_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
    reader_.join();
  }
  if (!folder_.empty()) {
    unlink((folder_ + "/said").c_str());
    rmdir(folder_.c_str());
  }
}

void Cluster::Job::Read() {
  bool running = true;
  while (running) {
    pollfd polls[] = {{said_.get(), POLLIN, 0},
                      {output_.get(), POLLIN, 0},
                      {wake_.get(), POLLIN, 0},
                      {process_.get(), POLLIN, 0}};
    poll(polls, 4, -1);
    siginfo_t info{};
    const bool ended = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 &&
                       info.si_pid == pid_;
    Drain();  // after the look: what was said before the end is there
    const std::lock_guard lock(mutex_);
    if (ended) {
      exit_code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    }
    running = !ended && !stopping_;
    changed_.notify_all();
  }
}

void Cluster::Job::Drain() {
  std::array<char, 4096> buffer;
  for (ssize_t bytes; (bytes = read(output_.get(), buffer.data(), buffer.size())) > 0;) {
    const std::lock_guard lock(mutex_);
    text_.append(buffer.data(), static_cast<size_t>(bytes));
  }
  for (ssize_t bytes; (bytes = read(said_.get(), buffer.data(), buffer.size())) > 0;) {
    unfinished_.append(buffer.data(), static_cast<size_t>(bytes));
    for (size_t end; (end = unfinished_.find('\n')) != std::string::npos;) {
      Take(unfinished_.substr(0, end));
      unfinished_.erase(0, end + 1);
    }
  }
}

// SLOT INCARNATION TEXT
void Cluster::Job::Take(const std::string& line) {
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first + 1);
  Message message{std::atoi(line.c_str()), line.substr(first + 1, second - first - 1),
                  line.substr(second + 1)};
  const std::lock_guard lock(mutex_);
  if (message.text.compare(0, sizeof kHello - 1, kHello) == 0) {
    processes_[message.slot] = OpenProcess(std::atoi(message.text.c_str() + sizeof kHello - 1));
  } else {
    messages_.push_back(std::move(message));
  }
}

std::string Cluster::Job::Tail() const {
  return text_.size() <= kTailBytes ? text_ : "..." + text_.substr(text_.size() - kTailBytes);
}

Status Cluster::Job::WaitFor(std::string_view text, int times, Limit limit) {
  std::unique_lock lock(mutex_);
  const auto said = [&] {
    return std::count_if(messages_.begin(), messages_.end(),
                         [text](const Message& message) { return message.text == text; });
  };
  const auto over = [&] { return said() >= times || exit_code_.has_value(); };
  const bool in_time = changed_.wait_for(lock, limit, over);
  if (said() >= times) {
    return {};
  }
  const std::string found = "'" + std::string(text) + "' was said " + std::to_string(said()) +
                            " times, not " + std::to_string(times);
  return {in_time ? Code::kFailedPrecondition : Code::kDeadlineExceeded,
          found +
              (in_time ? ", when the job ended with exit code " + std::to_string(*exit_code_)
                       : " within " + std::to_string(limit.count()) + " ms") +
              "; its output:\n" + Tail()};
}

bool Cluster::Job::WaitUntilEnded(Limit limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return exit_code_.has_value(); });
}

Status Cluster::Job::Wait(Limit limit) {
  if (!WaitUntilEnded(limit)) {
    return {Code::kDeadlineExceeded, "the job still runs after " + std::to_string(limit.count()) +
                                         " ms; its output:\n" + output()};
  }
  const std::lock_guard lock(mutex_);
  return *exit_code_ == 0 ? Status()
                          : Status(Code::kInternal, "the job ended with exit code " +
                                                        std::to_string(*exit_code_) +
                                                        "; its output:\n" + Tail());
}

Status Cluster::Job::Signal(int slot, int number) {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(slot);
  if (found == processes_.end()) {
    return {Code::kFailedPrecondition,
            "no process has started in slot " + std::to_string(slot) +
                " yet: wait with WaitFor until its rank has said something"};
  }
  if (syscall(SYS_pidfd_send_signal, found->second.get(), number, nullptr, 0) != 0) {
    return {Code::kFailedPrecondition,
            "the process of slot " + std::to_string(slot) + " has ended: " + std::strerror(errno)};
  }
  return {};
}

std::vector<Message> Cluster::Job::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

std::string Cluster::Job::output() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

int Cluster::Job::exit_code() const {
  const std::lock_guard lock(mutex_);
  return exit_code_.value_or(-1);
}

}  // namespace elastic::testing
