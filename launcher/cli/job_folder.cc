#include "launcher/cli/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr std::string_view kPrefix = "elastic-run-";
constexpr std::string_view kPattern = "/elastic-run-XXXXXX";
// Longest name of a socket in the folder, its slash and the final NUL included.
constexpr size_t kSocketNameBytesMax = 48;
constexpr size_t kBaseBytesMax =
    sizeof(sockaddr_un::sun_path) - kSocketNameBytesMax - kPattern.size();
// Somebody else may take a folder away between its making and its lock, but hardly twice.
constexpr int kTriesMax = 8;

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// True once `lock` keeps RemoveAbandoned away from the folder.
bool Take(const UniqueFd& lock) {
  struct stat info {};
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) == 0 &&
         fstat(lock.get(), &info) == 0 && info.st_nlink > 0;
}

// A launcher that is killed before its first agent runs leaves its folder to nobody. Whoever owns
// one holds a lock on it. Only what a job makes is removed, its sockets: any other file in it says
// that this is somebody's folder after all.
void RemoveIfAbandoned(const std::filesystem::path& path) {
  const UniqueFd folder = OpenFolder(path);
  struct stat info {};
  if (!folder.valid() || fstat(folder.get(), &info) != 0 || info.st_uid != geteuid() ||
      (info.st_mode & 07777) != 0700 || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return;
  }
  std::error_code error;
  std::vector<std::filesystem::path> sockets;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (!std::filesystem::is_socket(entry.symlink_status(error))) {
      return;
    }
    sockets.push_back(entry.path());
  }
  for (const std::filesystem::path& socket : sockets) {
    unlink(socket.c_str());
  }
  if (rmdir(path.c_str()) == 0) {
    LogDebug("removed ", path.string(), ", which a launcher that was killed had left");
  }
}

void RemoveAbandoned(const std::string& base) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && name.size() + 1 == kPattern.size()) {
      RemoveIfAbandoned(entry.path());
    }
  }
}

}  // namespace

StatusOr<JobFolder> JobFolder::Make() {
  const char* chosen = std::getenv("TMPDIR");
  Status problem;
  for (const std::string& base :
       {std::string(chosen == nullptr ? "" : chosen), std::string("/tmp")}) {
    if (base.empty() || base.front() != '/' || base.size() > kBaseBytesMax) {
      continue;
    }
    RemoveAbandoned(base);
    for (int tries = 0; tries < kTriesMax; ++tries) {
      std::string path = base + std::string(kPattern);
      if (mkdtemp(path.data()) == nullptr) {
        problem = ErrnoError(errno, "make a folder in " + base);
        break;
      }
      UniqueFd lock = OpenFolder(path);
      if (Take(lock)) {
        return JobFolder(std::move(path), std::move(lock));
      }
      problem = ErrnoError(errno, "lock the folder " + path);
    }
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
