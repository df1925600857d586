#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/cli/job_end.h"
#include "launcher/cli/run_options.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// Where the job's membership is decided: by a server in this process, or by a standing one.
class JobServer {
 public:
  struct Callbacks {
    std::function<void(Severity, const std::string&)> note;
    std::function<void(const JobEnd::Result&)> ended;  // once
  };
  // `folder` takes the socket of a server in this process.
  // Errors: an address that cannot be listened on; UNAVAILABLE when no standing server answers, and
  // what it says against the job.
  static StatusOr<std::unique_ptr<JobServer>> Start(const RunOptions& options, const JobSpec& job,
                                                    const std::string& folder, Callbacks callbacks);
  virtual ~JobServer() = default;

  virtual std::string agent_target() const = 0;  // what an agent dials
  virtual std::string status_address() const = 0;
  virtual void Post(Event event) = 0;
  virtual Held Newest() = 0;
  virtual void Shutdown() = 0;
};

}  // namespace elastic::internal
