#include "launcher/agent/guardian_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "launcher/agent/agent_limits.h"
#include "launcher/agent/guardian.h"
#include "launcher/agent/pass_descriptors.h"
#include "launcher/base/process_tree.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

// What the user reads when a worker cannot be started.
std::string SpawnMessage(const GuardianEvent& event) {
  const std::string reason = std::strerror(event.error_number);
  switch (event.step) {
    case SpawnStep::kExec:
      return event.error_number == ENOENT
                 ? "the command was not found: check its spelling, or give its full path"
                 : "the command cannot be executed: " + reason;
    case SpawnStep::kText:
      return StrCat("the command line or environment is too long (at most ", kWorkerArgumentsMax,
                    " arguments and ", kWorkerEnvironmentMax, " variables): ", reason);
    case SpawnStep::kTable:
      return StrCat("processes of ", kGuardianWorkersMax, " workers live on this host already");
    case SpawnStep::kMemory:
      return "no memory or descriptors for the worker (ulimit -n): " + reason;
    case SpawnStep::kFork: return "no new process could be made (ulimit -u): " + reason;
    case SpawnStep::kNone: break;
  }
  return reason;
}

bool Hopeless(const GuardianEvent& event) {
  if (event.step == SpawnStep::kText) {
    return true;
  }
  if (event.step != SpawnStep::kExec) {
    return false;
  }
  // Everything but a lack of resources or a file that is being written.
  return event.error_number != EAGAIN && event.error_number != ENOMEM &&
         event.error_number != ETXTBSY && event.error_number != EMFILE &&
         event.error_number != ENFILE && event.error_number != EIO;
}

ExitStatus ToExitStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? ExitStatus{true, WTERMSIG(wait_status)}
                                  : ExitStatus{false, WEXITSTATUS(wait_status)};
}

// The guardian must not hold the agent's output or anything else inherited open, nor read the
// user's terminal; it keeps a copy of the bootstrap input to see whether the launcher lives.
[[noreturn]] void BecomeGuardian(GuardianOptions options) {
  // Away from the numbers that they will have.
  const int socket = fcntl(options.socket, F_DUPFD_CLOEXEC, 16);
  const int bootstrap = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 16);
  const int null = fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, 16);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(null, fd);
  }
  options.socket = dup3(socket, 3, O_CLOEXEC);
  options.bootstrap_fd = dup3(bootstrap, 4, O_CLOEXEC);
  syscall(SYS_close_range, 5u, ~0u, 0u);
  RunGuardian(options);
}

}  // namespace

StatusOr<std::unique_ptr<GuardianClient>> GuardianClient::Fork(const std::string& job_id,
                                                               const Traces& traces) {
  std::unique_ptr<GuardianClient> client(new GuardianClient);
  void* memory = mmap(nullptr, sizeof(local::GuardianPage), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return ErrnoError(errno, "mmap of the guardian's page");
  }
  client->page_ = new (memory) local::GuardianPage{};
  client->page_->guardian_beat_ns = ToNanoseconds(Now());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoError(errno, "socketpair for the guardian");
  }
  client->socket_.Reset(ends[0]);
  const pid_t agent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    BecomeGuardian({ends[1], -1, agent, client->page_, job_id, traces});
  }
  close(ends[1]);
  if (pid < 0) {
    return ErrnoError(errno, "fork of the guardian");
  }
  client->pid_ = pid;
  client->handle_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!client->handle_.valid()) {
    return ErrnoError(errno, "pidfd_open of the guardian (Linux 5.3 or newer)");
  }
  return client;
}

GuardianClient::~GuardianClient() {
  socket_.Reset();
  if (pid_ > 0) {
    pollfd ended{handle_.get(), POLLIN, 0};
    const Duration limit = kKillRoundsLimit + kKillAllowance;
    if (!handle_.valid() || poll(&ended, 1, static_cast<int>(ToMilliseconds(limit))) != 1) {
      kill(pid_, SIGKILL);
    }
    waitpid(pid_, nullptr, 0);
  }
  if (page_ != nullptr) {
    munmap(page_, sizeof(local::GuardianPage));
  }
}

void GuardianClient::GiveUp() { kill(pid_, SIGKILL); }

Status GuardianClient::Send(const GuardianCommand& command, int descriptor) {
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  if (SendWithDescriptors(socket_.get(), &command, sizeof command, descriptors) !=
      static_cast<ssize_t>(sizeof command)) {
    return UnavailableError(
        StrCat("guardian (pid ", pid_, ") does not take commands: ", std::strerror(errno)));
  }
  return OkStatus();
}

Status GuardianClient::Spawn(const SpawnRequest& request) {
  std::string text;
  for (const std::vector<std::string>* strings : {&request.command, &request.environment}) {
    for (const std::string& item : *strings) {
      text.append(item.c_str(), std::strlen(item.c_str()) + 1);  // a NUL inside ends the string
    }
  }
  const UniqueFd memory(memfd_create("elastic-command", MFD_CLOEXEC));
  if (!memory.valid()) {
    return ErrnoError(errno, "memfd_create of a command");
  }
  for (size_t written = 0; written < text.size();) {
    const ssize_t bytes = write(memory.get(), text.data() + written, text.size() - written);
    if (bytes <= 0) {
      return ErrnoError(errno, "write of a command");
    }
    written += static_cast<size_t>(bytes);
  }
  return Send({GuardianCommandKind::kSpawn, local::ToWire(request.incarnation), 0,
               static_cast<uint32_t>(request.command.size()),
               static_cast<uint32_t>(request.environment.size()), text.size()},
              memory.get());
}

Status GuardianClient::Kill(WorkerIncarnation incarnation, int signal) {
  return Send({GuardianCommandKind::kKill, local::ToWire(incarnation), signal, 0, 0, 0}, -1);
}

StatusOr<std::optional<GuardianNews>> GuardianClient::Receive() {
  GuardianEvent event{};
  std::array<UniqueFd, kSpawnedDescriptors> descriptors;
  const ssize_t bytes = ReceiveWithDescriptors(socket_.get(), &event, sizeof event, descriptors);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return std::optional<GuardianNews>();
  }
  if (bytes < 0 && errno == EMFILE) {
    return ResourceExhaustedError(
        StrCat("this agent has no room for ", kSpawnedDescriptors,
               " descriptors of another worker: raise the limit (ulimit -n)"));
  }
  if (bytes != static_cast<ssize_t>(sizeof event)) {
    return UnavailableError(StrCat("guardian (pid ", pid_, ") has ended"));
  }
  GuardianNews news;
  news.kind = event.kind;
  news.incarnation = local::FromWire(event.incarnation);
  news.pid = event.pid;
  news.descriptors = {std::move(descriptors[0]), std::move(descriptors[1]),
                      std::move(descriptors[2]), std::move(descriptors[3]),
                      std::move(descriptors[4])};
  news.message = SpawnMessage(event);
  news.hopeless = Hopeless(event);
  news.status = ToExitStatus(event.wait_status);
  news.left_behind = event.left_behind;
  return std::optional<GuardianNews>(std::move(news));
}

}  // namespace elastic::internal
