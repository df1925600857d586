#include "launcher/agent/bootstrap.h"

#include <nlohmann/json.hpp>

namespace elastic::internal {

namespace {

using Json = nlohmann::json;

const char* NameOf(Severity severity) {
  switch (severity) {
    case Severity::kDebug: return "debug";
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "warning";
}

StatusOr<Severity> SeverityOf(const std::string& name) {
  for (Severity severity :
       {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError}) {
    if (name == NameOf(severity)) {
      return severity;
    }
  }
  return InvalidArgumentError("bootstrap field log_level is '" + name +
                              "', want debug, info, warning or error");
}

Status Check(const AgentBootstrap& bootstrap) {
  if (bootstrap.version != kBootstrapVersion) {
    return InvalidArgumentError(StrCat("bootstrap version is ", bootstrap.version,
                                       ", this agent "
                                       "speaks ",
                                       kBootstrapVersion,
                                       ": use elastic-run and elastic-agent of one release"));
  }
  if (bootstrap.job_id.empty() || bootstrap.server.empty() || bootstrap.folder.empty()) {
    return InvalidArgumentError("bootstrap fields job_id, server and folder must not be empty");
  }
  if (bootstrap.host.empty() || bootstrap.host.size() > kHostNameBytesMax) {
    return InvalidArgumentError(StrCat("bootstrap field host has ", bootstrap.host.size(),
                                       " bytes, want 1 to ", kHostNameBytesMax));
  }
  if (bootstrap.slots < 1 || bootstrap.slots > kSlotsPerHostMax) {
    return InvalidArgumentError(
        StrCat("bootstrap field slots is ", bootstrap.slots, ", want 1 to ", kSlotsPerHostMax));
  }
  if (bootstrap.command.empty() || bootstrap.command.front().empty()) {
    return InvalidArgumentError("bootstrap field command names no program");
  }
  if (bootstrap.grace_period < Duration(0) || bootstrap.orphan_limit <= Duration(0)) {
    return InvalidArgumentError(
        "bootstrap fields grace_period_ns and orphan_limit_ns must not be "
        "negative, and the orphan limit not zero");
  }
  return OkStatus();
}

}  // namespace

std::string AgentBootstrap::ToJson() const {
  const Json json = {{"version", version},
                     {"job_id", job_id},
                     {"job_nonce", job_nonce},
                     {"host", host},
                     {"listen_address", listen_address},
                     {"slots", slots},
                     {"server", server},
                     {"folder", folder},
                     {"command", command},
                     {"environment", environment},
                     {"working_directory", working_directory},
                     {"grace_period_ns", grace_period.count()},
                     {"orphan_limit_ns", orphan_limit.count()},
                     {"log_level", NameOf(log_level)},
                     {"np", np}};
  // Bytes of a command line need not be UTF-8; such an argument travels damaged, not thrown.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<AgentBootstrap> AgentBootstrap::FromJson(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return InvalidArgumentError(
        StrCat("the bootstrap on standard input is no JSON object (", line.size(),
               " bytes): elastic-agent is started by elastic-run, not by hand"));
  }
  AgentBootstrap result;
  try {
    json.at("version").get_to(result.version);
    json.at("job_id").get_to(result.job_id);
    json.at("job_nonce").get_to(result.job_nonce);
    json.at("host").get_to(result.host);
    json.at("listen_address").get_to(result.listen_address);
    json.at("slots").get_to(result.slots);
    json.at("server").get_to(result.server);
    json.at("folder").get_to(result.folder);
    json.at("command").get_to(result.command);
    json.at("environment").get_to(result.environment);
    json.at("working_directory").get_to(result.working_directory);
    result.grace_period = Duration(json.at("grace_period_ns").get<int64_t>());
    result.orphan_limit = Duration(json.at("orphan_limit_ns").get<int64_t>());
    ASSIGN_OR_RETURN(result.log_level, SeverityOf(json.at("log_level").get<std::string>()));
    json.at("np").get_to(result.np);
  } catch (const Json::exception& error) {
    return InvalidArgumentError(std::string("bootstrap on standard input: ") + error.what());
  }
  RETURN_IF_ERROR(Check(result));
  return result;
}

}  // namespace elastic::internal
