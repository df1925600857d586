#include "rendezvous/base/ids.h"

#include <cstdio>

namespace elastic::internal {

std::string ToString(ServerIncarnation id) { return std::to_string(id.value); }
std::string ToString(GenerationNumber number) { return std::to_string(number.value); }

std::string ToString(const GenerationId& id) {
  char digest[20];
  std::snprintf(digest, sizeof digest, "%08x", static_cast<unsigned>(id.roster_digest >> 32));
  return ToString(id.number) + " (server " + ToString(id.server) + ", roster " + digest + ")";
}

std::string ToString(WorkerIncarnation id) {
  return std::to_string(id.agent.value) + "." + std::to_string(id.counter);
}

std::string ToString(const StateVersion& version) {
  if (!version.valid()) {
    return "none";
  }
  return "(" + ToString(version.generation) + ", " + std::to_string(version.commits) + ")";
}

std::string ToString(const Endpoint& endpoint) {
  const bool v6 = endpoint.address.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.address + "]" : endpoint.address) + ":" +
         std::to_string(endpoint.port);
}

}  // namespace elastic::internal
