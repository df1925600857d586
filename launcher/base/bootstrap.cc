#include "launcher/base/bootstrap.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "rendezvous/base/severity_names.h"

namespace elastic::internal {

namespace {

using Json = nlohmann::json;

StatusOr<Severity> SeverityOf(const std::string& name) {
  const std::optional<Severity> severity = ParseSeverity(name);
  if (!severity) {
    return InvalidArgumentError("bootstrap field log_level is '" + name +
                                "', want debug, info, warning or error");
  }
  return *severity;
}

// Arguments and paths are bytes, JSON's strings are UTF-8: every other byte than those
// of ASCII travels as %XX, as in a URL, and so does the per cent sign itself.
std::string Encode(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && c != '%') {
      text += c;
    } else {
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

StatusOr<std::string> Decode(const std::string& text, const char* field) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      bytes += text[at];
      continue;
    }
    const std::string digits = text.substr(at + 1, 2);
    uint8_t byte = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() != 2 || parsed.ec != std::errc() || parsed.ptr != end) {
      return InvalidArgumentError(
          StrCat("bootstrap field ", field, " has a '%' without two hexadecimal digits"));
    }
    bytes += static_cast<char>(byte);
    at += 2;
  }
  return bytes;
}

StatusOr<std::string> TextOf(const Json& json, const char* field) {
  return Decode(json.at(field).get<std::string>(), field);
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
  if (bootstrap.job_id.size() > kJobIdBytesMax) {
    return InvalidArgumentError(StrCat("bootstrap field job_id has ", bootstrap.job_id.size(),
                                       " bytes, at most ", kJobIdBytesMax, " are possible"));
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
  Json words = Json::array();
  for (const std::string& word : command) {
    words.push_back(Encode(word));
  }
  const Json json = {{"version", version},
                     {"job_id", Encode(job_id)},
                     {"job_nonce", job_nonce},
                     {"host", Encode(host)},
                     {"listen_address", Encode(listen_address)},
                     {"slots", slots},
                     {"server", Encode(server)},
                     {"folder", Encode(folder)},
                     {"command", std::move(words)},
                     {"grace_period_ns", grace_period.count()},
                     {"orphan_limit_ns", orphan_limit.count()},
                     {"replaces", replaces},
                     {"log_level", SeverityName(log_level)}};
  return json.dump();
}

Status AgentBootstrap::CheckSize() const {
  const size_t bytes = ToJson().size();
  if (bytes > kBootstrapBytesMax) {
    return ResourceExhaustedError(StrCat("the command takes ", bytes,
                                         " bytes to tell an agent, at most ", kBootstrapBytesMax,
                                         " are possible: put long arguments into a file"));
  }
  return OkStatus();
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
    ASSIGN_OR_RETURN(result.job_id, TextOf(json, "job_id"));
    json.at("job_nonce").get_to(result.job_nonce);
    ASSIGN_OR_RETURN(result.host, TextOf(json, "host"));
    ASSIGN_OR_RETURN(result.listen_address, TextOf(json, "listen_address"));
    json.at("slots").get_to(result.slots);
    ASSIGN_OR_RETURN(result.server, TextOf(json, "server"));
    ASSIGN_OR_RETURN(result.folder, TextOf(json, "folder"));
    for (const Json& word : json.at("command")) {
      ASSIGN_OR_RETURN(result.command.emplace_back(), Decode(word, "command"));
    }
    result.grace_period = Duration(json.at("grace_period_ns").get<int64_t>());
    result.orphan_limit = Duration(json.at("orphan_limit_ns").get<int64_t>());
    result.replaces = json.value("replaces", false);
    ASSIGN_OR_RETURN(result.log_level, SeverityOf(json.at("log_level").get<std::string>()));
  } catch (const Json::exception& error) {
    return InvalidArgumentError(std::string("bootstrap on standard input: ") + error.what());
  }
  RETURN_IF_ERROR(Check(result));
  return result;
}

}  // namespace elastic::internal
