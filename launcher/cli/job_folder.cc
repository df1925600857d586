#include "launcher/cli/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kPattern = "/elastic-XXXXXX";
// Longest name of a socket in the folder, its slash and the final NUL included.
constexpr size_t kSocketNameBytesMax = 48;
constexpr size_t kBaseBytesMax =
    sizeof(sockaddr_un::sun_path) - kSocketNameBytesMax - kPattern.size();

}  // namespace

StatusOr<JobFolder> JobFolder::Make() {
  const char* chosen = std::getenv("TMPDIR");
  Status problem;
  for (const std::string& base :
       {std::string(chosen == nullptr ? "" : chosen), std::string("/tmp")}) {
    if (base.empty() || base.front() != '/' || base.size() > kBaseBytesMax) {
      continue;
    }
    std::string path = base + std::string(kPattern);
    if (mkdtemp(path.data()) != nullptr) {
      UniqueFd lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      flock(lock.get(), LOCK_SH | LOCK_NB);
      return JobFolder(std::move(path), std::move(lock));
    }
    problem = ErrnoError(errno, "make a folder in " + base);
  }
  return Status(problem.code(), problem.message() + ": set TMPDIR to a folder that can be written");
}

JobFolder::JobFolder(std::string path, UniqueFd lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

JobFolder::JobFolder(JobFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

JobFolder::~JobFolder() { Remove(); }

void JobFolder::Remove() {
  if (path_.empty()) {
    return;
  }
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) {
    LogWarning("could not remove ", path_, ": ", error.message());
  }
  path_.clear();
}

}  // namespace elastic::internal
