#include "launcher/agent/guardian_spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "launcher/agent/agent_limits.h"
#include "proto/local/control_page.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

namespace {

// The command's strings, split into the tables that exec takes. Static: one spawn at a time.
struct Strings {
  char* arguments[kWorkerArgumentsMax + 1];
  char* environment[kWorkerEnvironmentMax + 1];
};
Strings strings;

bool Split(char* text, const GuardianCommand& command) {
  if (command.arguments < 1 || command.arguments > kWorkerArgumentsMax ||
      command.environment > kWorkerEnvironmentMax) {
    return false;
  }
  char* at = text;
  char* const end = text + command.text_bytes;
  const uint32_t total = command.arguments + command.environment;
  for (uint32_t i = 0; i < total; ++i) {
    char* const nul = static_cast<char*>(std::memchr(at, '\0', static_cast<size_t>(end - at)));
    if (nul == nullptr) {
      return false;
    }
    if (i < command.arguments) {
      strings.arguments[i] = at;
    } else {
      strings.environment[i - command.arguments] = at;
    }
    at = nul + 1;
  }
  strings.arguments[command.arguments] = nullptr;
  strings.environment[command.environment] = nullptr;
  return true;
}

bool MakePage(GuardianWorker& worker) {
  worker.page.Reset(memfd_create("elastic-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!worker.page.valid() || ftruncate(worker.page.get(), local::kControlPageBytes) != 0) {
    return false;
  }
  void* memory = mmap(nullptr, local::kControlPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      worker.page.get(), 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  auto* page = new (memory) local::ControlPage{};
  page->magic = local::kControlPageMagic;
  page->version = local::kControlPageVersion;
  munmap(memory, local::kControlPageBytes);
  // A worker that shrank its page would make the agent's next look a SIGBUS.
  return fcntl(worker.page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

struct Pipe {
  UniqueFd read_end, write_end;
};
bool MakePipe(Pipe& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return false;
  }
  pipe.read_end.Reset(ends[0]);
  pipe.write_end.Reset(ends[1]);
  return true;
}

struct ChildSetup {
  int input, output, errors, exec_result;
  rlimit files;
};

[[noreturn]] void FailChild(int exec_result, SpawnStep step) {
  const ExecFailure failure{step, errno};
  [[maybe_unused]] const ssize_t written = write(exec_result, &failure, sizeof failure);
  _exit(127);
}

// The user's program begins as if a shell had started it: default signals and scheduling, three
// descriptors.
[[noreturn]] void RunChild(const ChildSetup& setup, pid_t guardian) {
  setpgid(0, 0);
  // Holds even when guardian and agent are killed in the same moment; bound to the guardian's only
  // thread, so it never fires early.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) {
    _exit(127);
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // elastic-run and the agent ask for a short slice, which fork and exec hand down.
  static_cast<void>(ResetSlice());
  setrlimit(RLIMIT_NOFILE, &setup.files);
  if (dup2(setup.input, 0) < 0 || dup2(setup.output, 1) < 0 || dup2(setup.errors, 2) < 0) {
    FailChild(setup.exec_result, SpawnStep::kMemory);
  }
  syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  environ = strings.environment;
  execvp(strings.arguments[0], strings.arguments);
  FailChild(setup.exec_result, SpawnStep::kExec);
}

SpawnStep TryStart(GuardianWorker& worker, const GuardianCommand& command, char* text,
                   const rlimit& files) {
  if (!Split(text, command)) {
    errno = E2BIG;
    return SpawnStep::kText;
  }
  Pipe output, errors, exec_result;
  const UniqueFd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  worker.state.Reset(memfd_create("elastic-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  worker.bell.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!input.valid() || !worker.state.valid() || !worker.bell.valid() || !MakePage(worker) ||
      !MakePipe(output) || !MakePipe(errors) || !MakePipe(exec_result)) {
    return SpawnStep::kMemory;
  }
  const pid_t guardian = getpid();
  worker.pid = fork();
  if (worker.pid == 0) {
    RunChild({input.get(), output.write_end.get(), errors.write_end.get(),
              exec_result.write_end.get(), files},
             guardian);
  }
  if (worker.pid < 0) {
    worker.pid = 0;
    return SpawnStep::kFork;
  }
  setpgid(worker.pid, worker.pid);  // whoever comes first
  worker.output = std::move(output.read_end);
  worker.errors = std::move(errors.read_end);
  worker.exec_result = std::move(exec_result.read_end);
  fcntl(worker.exec_result.get(), F_SETFL, O_NONBLOCK);
  return SpawnStep::kNone;
}

}  // namespace

void StartWorker(GuardianWorker& worker, const GuardianCommand& command, UniqueFd text,
                 const rlimit& files) {
  void* memory = command.text_bytes == 0
                     ? MAP_FAILED
                     : mmap(nullptr, command.text_bytes, PROT_READ, MAP_PRIVATE, text.get(), 0);
  if (memory == MAP_FAILED) {
    worker.failed_step = SpawnStep::kText;
    worker.error_number = errno;
    return;
  }
  worker.failed_step = TryStart(worker, command, static_cast<char*>(memory), files);
  worker.error_number = worker.failed_step == SpawnStep::kNone ? 0 : errno;
  munmap(memory, command.text_bytes);
}

}  // namespace elastic::internal
