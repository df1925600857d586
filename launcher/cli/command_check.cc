#include "launcher/cli/command_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

enum class FileKind { kMissing, kFolder, kNotExecutable, kExecutable };

FileKind KindOf(const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) {
    return FileKind::kMissing;
  }
  if (S_ISDIR(info.st_mode)) {
    return FileKind::kFolder;
  }
  return access(file.c_str(), X_OK) == 0 ? FileKind::kExecutable : FileKind::kNotExecutable;
}

StatusOr<std::string> Judge(const std::string& word, const std::string& file) {
  switch (KindOf(file)) {
    case FileKind::kExecutable: return file;
    case FileKind::kFolder:
      return FailedPreconditionError(
          StrCat("command '", word, "' is a folder: give the program in it"));
    case FileKind::kNotExecutable:
      return FailedPreconditionError(
          StrCat("command '", word, "' is not executable: chmod +x ", file,
                 ", or name its interpreter first, for example python3 ", word));
    case FileKind::kMissing: break;
  }
  return NotFoundError(StrCat("command '", word, "' not found: check its path"));
}

}  // namespace

StatusOr<std::string> FindCommand(const std::string& word, const std::string& path) {
  if (word.empty()) {
    return NotFoundError("the command is an empty word: put the program after the flags");
  }
  if (word.find('/') != std::string::npos) {
    return Judge(word, word);
  }
  std::string not_executable;
  std::string_view folders = path;
  for (bool more = true; more;) {
    const size_t colon = folders.find(':');
    const std::string folder(folders.substr(0, colon));
    more = colon != std::string_view::npos;
    folders.remove_prefix(more ? colon + 1 : folders.size());
    // An empty folder in PATH is the working directory, as for the shell.
    const std::string file = folder.empty() ? "./" + word : folder + "/" + word;
    const FileKind kind = KindOf(file);
    if (kind == FileKind::kExecutable) {
      return file;
    }
    if (kind == FileKind::kNotExecutable && not_executable.empty()) {
      not_executable = file;
    }
  }
  if (!not_executable.empty()) {
    return Judge(word, not_executable);
  }
  const bool here = KindOf("./" + word) == FileKind::kExecutable;
  return NotFoundError(StrCat("command '", word, "' not found in PATH: ",
                              here ? StrCat("to run the file in this folder write ./", word)
                                   : std::string("check its name, or give its path")));
}

}  // namespace elastic::internal
