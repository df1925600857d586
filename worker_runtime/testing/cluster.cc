#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "worker_runtime/testing/cluster_job.h"
#include "worker_runtime/testing/program_image.h"

namespace elastic::testing {

namespace {

constexpr int kRanksMax = 256;  // slots of one host

bool Executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// The path of elastic-run; "" if there is none.
std::string FindLauncher(const std::string& wanted) {
  const char* named = std::getenv("ELASTIC_RUN");
  const std::string chosen = !wanted.empty() ? wanted : named != nullptr ? named : "";
  if (!chosen.empty()) {
    return Executable(chosen) ? chosen : "";
  }
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    const std::string candidate = folders.substr(0, end) + "/elastic-run";
    if (Executable(candidate)) {
      return candidate;
    }
    folders = end == std::string::npos ? "" : folders.substr(end + 1);
  }
  return "";
}

std::string ThisProgram() {
  std::string path(4096, '\0');
  const ssize_t bytes = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return path;
}

Status CheckOptions(const Cluster::Options& options) {
  if (options.ranks < 1 || options.ranks > kRanksMax) {
    return {Code::kInvalidArgument, "Options::ranks is " + std::to_string(options.ranks) +
                                        ", 1 to " + std::to_string(kRanksMax) + " are possible"};
  }
  if (options.min_ranks < 1 || options.min_ranks > options.ranks) {
    return {Code::kInvalidArgument, "Options::min_ranks is " + std::to_string(options.min_ranks) +
                                        ", 1 to ranks (" + std::to_string(options.ranks) +
                                        ") are possible"};
  }
  return {};
}

}  // namespace

Cluster::Cluster(int ranks) : Cluster(Options{ranks, 1, {}, {}}) {}
Cluster::Cluster(Options options) : options_(std::move(options)) {}
Cluster::~Cluster() = default;

Status Cluster::Start(RankFunction function, std::vector<std::string> arguments) {
  ELASTIC_RETURN_IF_ERROR(CheckOptions(options_));
  if (job_ != nullptr) {
    return {Code::kFailedPrecondition, "Start was called before: one job per Cluster"};
  }
  const ProgramImage image = Image();
  const auto address = reinterpret_cast<uintptr_t>(function);
  if (address < image.code_begin || address >= image.code_end) {
    return {Code::kInvalidArgument,
            "the ranks' function is not of this program: take one that is not in a shared library"};
  }
  const std::string launcher = FindLauncher(options_.launcher);
  if (launcher.empty()) {
    return {Code::kFailedPrecondition,
            "found no elastic-run to start: name it in Options::launcher or in ELASTIC_RUN, or put "
            "its folder into PATH"};
  }
  char offset[32];
  std::snprintf(offset, sizeof offset, "%llx",
                static_cast<unsigned long long>(address - image.base));
  std::vector<std::string> command{launcher,
                                   "-np",
                                   std::to_string(options_.ranks),
                                   "--min-np",
                                   std::to_string(options_.min_ranks),
                                   "-H",
                                   "127.0.0.1:" + std::to_string(options_.ranks)};
  command.insert(command.end(), options_.flags.begin(), options_.flags.end());
  command.emplace_back("--");
  command.push_back(ThisProgram());
  command.insert(command.end(), arguments.begin(), arguments.end());
  job_ = std::make_unique<Job>();
  return job_->Start(std::move(command), offset);
}

Status Cluster::WaitFor(std::string_view text, int times, Limit limit) {
  return job_ != nullptr ? job_->WaitFor(text, times, limit)
                         : Status(Code::kFailedPrecondition, "call Start first");
}

std::vector<Message> Cluster::messages() const {
  return job_ != nullptr ? job_->messages() : std::vector<Message>();
}

Status Cluster::Kill(int slot) {
  return job_ != nullptr ? job_->Signal(slot, SIGKILL)
                         : Status(Code::kFailedPrecondition, "call Start first");
}

Status Cluster::Stop(int slot) {
  return job_ != nullptr ? job_->Signal(slot, SIGSTOP)
                         : Status(Code::kFailedPrecondition, "call Start first");
}

Status Cluster::Continue(int slot) {
  return job_ != nullptr ? job_->Signal(slot, SIGCONT)
                         : Status(Code::kFailedPrecondition, "call Start first");
}

Status Cluster::Wait(Limit limit) {
  return job_ != nullptr ? job_->Wait(limit)
                         : Status(Code::kFailedPrecondition, "call Start first");
}

int Cluster::exit_code() const { return job_ != nullptr ? job_->exit_code() : -1; }

std::string Cluster::output() const { return job_ != nullptr ? job_->output() : ""; }

}  // namespace elastic::testing
