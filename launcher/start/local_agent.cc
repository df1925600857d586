#include "launcher/start/local_agent.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "rendezvous/base/check.h"

extern char** environ;

namespace elastic::internal {

namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return ErrnoError(errno, "pipe for an agent");
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// posix_spawn's two argument objects, released together.
class SpawnPlan {
 public:
  SpawnPlan(int input, int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    // Whatever the launcher inherited from its own parent must not stay open in workers.
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes_, &all);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

StatusOr<std::string> FindAgentProgram() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || static_cast<size_t>(length) == sizeof self) {
    return ErrnoError(errno, "readlink /proc/self/exe");
  }
  std::string program(self, static_cast<size_t>(length));
  program.replace(program.rfind('/') + 1, std::string::npos, "elastic-agent");
  if (access(program.c_str(), X_OK) != 0) {
    return NotFoundError("elastic-agent is not beside elastic-run: want an executable file " +
                         program + " (install all programs into one folder)");
  }
  return program;
}

StatusOr<LocalAgent> StartLocalAgent(const std::string& program, const AgentBootstrap& bootstrap) {
  ASSIGN_OR_RETURN(Pipe input, MakePipe());
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  const SpawnPlan plan(input.read.get(), output.write.get(), errors.write.get());
  std::string name = "elastic-agent";
  char* const arguments[] = {name.data(), nullptr};

  LocalAgent agent;
  const int failed = posix_spawn(&agent.pid, program.c_str(), plan.actions(), plan.attributes(),
                                 arguments, environ);
  if (failed != 0) {
    return ErrnoError(failed, "start " + program);
  }
  // Nobody else reaps our children, so the pid is still this process.
  agent.pidfd.Reset(static_cast<int>(syscall(SYS_pidfd_open, agent.pid, 0)));
  if (!agent.pidfd.valid()) {
    const Status error = ErrnoError(errno, "pidfd_open of " + program);
    kill(agent.pid, SIGKILL);
    waitpid(agent.pid, nullptr, 0);
    return error;
  }
  agent.input = std::move(input.write);
  agent.output = std::move(output.read);
  agent.errors = std::move(errors.read);
  // Never wait for an agent that does not read: the launcher's loop serves all of them.
  fcntl(agent.input.get(), F_SETFL, O_NONBLOCK);
  agent.unwritten = bootstrap.ToJson() + '\n';
  ContinueBootstrap(agent);
  return agent;
}

void ContinueBootstrap(LocalAgent& agent) {
  while (!agent.unwritten.empty()) {
    const ssize_t count = write(agent.input.get(), agent.unwritten.data(), agent.unwritten.size());
    if (count >= 0) {
      agent.unwritten.erase(0, static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      agent.unwritten.clear();  // the agent is gone
    }
  }
}

std::optional<ExitStatus> ReapAgent(LocalAgent& agent) {
  siginfo_t info{};
  ELASTIC_CHECK(waitid(P_PID, static_cast<id_t>(agent.pid), &info, WEXITED | WNOHANG) == 0);
  if (info.si_pid == 0) {
    pollfd ended{agent.pidfd.get(), POLLIN, 0};
    if (agent.pidfd.valid() && poll(&ended, 1, 0) == 1) {
      agent.pidfd.Reset();  // a loop that polls it would spin
    }
    return std::nullopt;
  }
  agent.pidfd.Reset();
  agent.pid = 0;
  return ExitStatus{info.si_code != CLD_EXITED, info.si_status};
}

}  // namespace elastic::internal
