#include "launcher/cli/job_folder.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace elastic::internal {
namespace {

// TMPDIR for one test.
class Tmpdir {
 public:
  explicit Tmpdir(const std::string& value) {
    const char* old = std::getenv("TMPDIR");
    old_ = old == nullptr ? "" : old;
    setenv("TMPDIR", value.c_str(), 1);
  }
  ~Tmpdir() {
    if (old_.empty()) {
      unsetenv("TMPDIR");
    } else {
      setenv("TMPDIR", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

TEST_CASE("TheFolderIsTheUsersAloneAndGoesWithItsOwner") {
  std::string path;
  {
    const auto folder = JobFolder::Make();
    REQUIRE(folder.ok());
    path = folder->path();
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    std::ofstream(path + "/left-over") << "x";
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("AMovedFolderIsRemovedOnce") {
  auto made = JobFolder::Make();
  REQUIRE(made.ok());
  const std::string path = made->path();
  {
    JobFolder moved = std::move(*made);
    CHECK(std::filesystem::exists(path));
    moved.Remove();
    CHECK_FALSE(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("ATmpdirThatIsTooLongForSocketsOrMissingIsPassedOver") {
  for (const std::string& value : {"/tmp/" + std::string(80, 'x'), std::string("/nonexistent"),
                                   std::string("relative/folder")}) {
    const Tmpdir tmpdir(value);
    const auto folder = JobFolder::Make();
    REQUIRE(folder.ok());
    CHECK_THAT(folder->path(), Catch::StartsWith("/tmp/elastic-"));
  }
}

// A socket with a name, as a launcher that was killed leaves it.
void LeaveSocket(const std::string& path) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

TEST_CASE("WhatAKilledLauncherLeftIsRemovedByTheNextOneAndNothingElse") {
  char pattern[] = "/tmp/jf.XXXXXX";
  REQUIRE(mkdtemp(pattern) != nullptr);
  const std::string base = pattern;
  const Tmpdir tmpdir(base);
  const auto living = JobFolder::Make();
  REQUIRE(living.ok());
  LeaveSocket(living->path() + "/rendezvous.sock");
  const std::string abandoned = base + "/elastic-run-killed", bare = base + "/elastic-run-empty1";
  const std::string with_file = base + "/elastic-run-mine00", open = base + "/elastic-run-open00";
  const std::string other_name = base + "/elastic-run-of-the-mill";
  for (const std::string& folder : {abandoned, bare, with_file, open, other_name}) {
    REQUIRE(mkdir(folder.c_str(), 0700) == 0);
  }
  LeaveSocket(abandoned + "/rendezvous.sock");
  std::ofstream(with_file + "/notes") << "x";
  REQUIRE(chmod(open.c_str(), 0755) == 0);
  {
    const auto next = JobFolder::Make();
    REQUIRE(next.ok());
    CHECK(std::filesystem::exists(living->path() + "/rendezvous.sock"));
    CHECK_FALSE(std::filesystem::exists(abandoned));
    CHECK_FALSE(std::filesystem::exists(bare));
    CHECK(std::filesystem::exists(with_file + "/notes"));
    CHECK(std::filesystem::exists(open));
    CHECK(std::filesystem::exists(other_name));
  }
  std::filesystem::remove_all(base);
}

TEST_CASE("TmpdirIsUsedWhenItCanBe") {
  char pattern[] = "/tmp/jf.XXXXXX";
  REQUIRE(mkdtemp(pattern) != nullptr);
  {
    const Tmpdir tmpdir(pattern);
    const auto folder = JobFolder::Make();
    REQUIRE(folder.ok());
    CHECK_THAT(folder->path(), Catch::StartsWith(std::string(pattern) + "/elastic-"));
  }
  std::filesystem::remove(pattern);
}

}  // namespace
}  // namespace elastic::internal
