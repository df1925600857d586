#include "launcher/cli/command_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace elastic::internal {
namespace {

// A folder of its own with one executable, one plain file and one folder.
struct CommandFolder {
  CommandFolder() {
    char pattern[] = "/tmp/elastic_command_test.XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    folder = pattern;
    for (const char* name : {"good", "plain"}) {
      std::ofstream(folder + "/" + name) << "#!/bin/sh\n";
    }
    REQUIRE(chmod((folder + "/good").c_str(), 0755) == 0);
    REQUIRE(chmod((folder + "/plain").c_str(), 0644) == 0);
    REQUIRE(mkdir((folder + "/inner").c_str(), 0755) == 0);
  }
  ~CommandFolder() { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST_CASE("ACommandWithASlashIsTakenAsAFile") {
  const CommandFolder files;
  CHECK(FindCommand(files.folder + "/good", "").value() == files.folder + "/good");
}

TEST_CASE("ACommandWithoutASlashIsLookedUpInPath") {
  const CommandFolder files;
  CHECK(FindCommand("good", "/nonexistent:" + files.folder).value() == files.folder + "/good");
}

TEST_CASE("AMissingCommandIsNotFound") {
  const CommandFolder files;
  const auto by_path = FindCommand("gone", files.folder);
  REQUIRE_FALSE(by_path.ok());
  CHECK(by_path.status().code() == StatusCode::kNotFound);
  CHECK_THAT(by_path.status().message(), Catch::Contains("'gone' not found in PATH"));
  const auto by_file = FindCommand(files.folder + "/gone", "/bin");
  REQUIRE_FALSE(by_file.ok());
  CHECK(by_file.status().code() == StatusCode::kNotFound);
  CHECK_THAT(by_file.status().message(), Catch::Contains(files.folder + "/gone' not found"));
  CHECK(FindCommand("", "/bin").status().code() == StatusCode::kNotFound);
}

TEST_CASE("AFileThatIsNotExecutableSaysWhatToDo") {
  const CommandFolder files;
  for (const auto& found :
       {FindCommand("plain", files.folder), FindCommand(files.folder + "/plain", "/bin")}) {
    REQUIRE_FALSE(found.ok());
    CHECK(found.status().code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(found.status().message(), Catch::Contains("chmod +x " + files.folder + "/plain"));
  }
}

TEST_CASE("AFolderIsNoCommand") {
  const CommandFolder files;
  const auto found = FindCommand(files.folder + "/inner", "/bin");
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(found.status().message(), Catch::Contains("is a folder"));
  CHECK(FindCommand("inner", files.folder).status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace elastic::internal
