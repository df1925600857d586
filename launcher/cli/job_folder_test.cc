#include "launcher/cli/job_folder.h"

#include <sys/stat.h>

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
