#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/status.h"

namespace elastic::internal {

inline constexpr int kBootstrapVersion = 1;
// One line on standard input; the command is most of it.
inline constexpr size_t kBootstrapBytesMax = 4u << 20;

// What the launcher tells an agent: one line of JSON on its standard input, which then stays open;
// its closing means that the launcher is gone (P21). Never argv, so that nothing of it is visible
// to other users, and no shell on the way can change it.
struct AgentBootstrap {
  int version = kBootstrapVersion;
  std::string job_id;
  uint64_t job_nonce = 0;  // part of every data hello
  std::string host;        // name of this host in the job
  std::string listen_address =
      "127.0.0.1";  // numeric; data listeners and the copy server bind here
  int32_t slots = 1;
  std::string server;  // gRPC target of the rendezvous server, e.g. unix:/run/x/rendezvous.sock
  // Mode 0700, made by the launcher; holds the sockets of the job on this host. The agent removes
  // what it put there, and everything when the launcher is gone.
  std::string folder;
  std::vector<std::string> command;  // of the worker, not empty
  Duration grace_period = kGracePeriodDefault;
  Duration orphan_limit = kOrphanLimitInProcess;
  bool replaces = false;  // an agent was started on this host before, in the same job
  Severity log_level = Severity::kWarning;

  // One line without its newline, of ASCII alone.
  std::string ToJson() const;
  // Errors: RESOURCE_EXHAUSTED when the line is longer than an agent takes.
  Status CheckSize() const;
  // Errors: INVALID_ARGUMENT names the field that is missing, of the wrong type or out of range.
  static StatusOr<AgentBootstrap> FromJson(std::string_view line);
  friend bool operator==(const AgentBootstrap&, const AgentBootstrap&) = default;
};

}  // namespace elastic::internal
