#pragma once

#include <string>

#include "rendezvous/base/status.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// A folder of mode 0700 that holds the sockets of one job and is removed with this object. Its path
// is short enough for socket addresses (108 bytes). It lies in $TMPDIR or /tmp and not in
// $XDG_RUNTIME_DIR, which is emptied when the user logs out while a job under nohup goes on; a lock
// held on it, by each of its agents as well, keeps systemd-tmpfiles and later jobs from taking it
// for an old leftover.
class JobFolder {
 public:
  // Removes folders of this user's launchers that were killed before they had an agent to do it.
  // Errors: of mkdtemp, naming the folder that was tried last and TMPDIR as the knob.
  static StatusOr<JobFolder> Make();

  JobFolder(JobFolder&&) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;
  ~JobFolder();

  const std::string& path() const { return path_; }
  void Remove();

 private:
  JobFolder(std::string path, UniqueFd lock);

  std::string path_;
  UniqueFd lock_;
};

}  // namespace elastic::internal
