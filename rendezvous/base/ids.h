#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace elastic::internal {

// Identities are issued, never guessed (P1). All are plain values: copied into frames, the control
// page, messages and records alike.

// One life of a rendezvous server. Reserved durably before use; only ever grows.
struct ServerIncarnation {
  uint64_t value = 0;  // 0: none yet
  auto operator<=>(const ServerIncarnation&) const = default;
};

// Number of a generation: one fixed membership. 0 means none. Only ever grows within a job.
struct GenerationNumber {
  uint32_t value = 0;
  auto operator<=>(const GenerationNumber&) const = default;
};

// The full name of a generation; equality needs all three parts (P2).
struct GenerationId {
  ServerIncarnation server;
  GenerationNumber number;
  uint64_t roster_digest = 0;
  bool valid() const { return number.value != 0; }
  auto operator<=>(const GenerationId&) const = default;
};

// One life of an agent on a host, issued by the server when the agent registers.
struct AgentIncarnation {
  uint32_t value = 0;  // 0: not registered
  auto operator<=>(const AgentIncarnation&) const = default;
};

// One life of a process in a slot. The counter grows at each spawn and each re-offer (P1).
struct WorkerIncarnation {
  AgentIncarnation agent;
  uint32_t counter = 0;  // from 1
  bool valid() const { return agent.value != 0 && counter != 0; }
  auto operator<=>(const WorkerIncarnation&) const = default;
};

// A version of committed state: generation in which it was committed, commits in it, compared in
// that order everywhere (P3). {0, 0} is none. The program's step is a label beside it.
struct StateVersion {
  GenerationNumber generation;
  uint32_t commits = 0;
  bool valid() const { return generation.value != 0; }
  auto operator<=>(const StateVersion&) const = default;
};

// What a worker or an agent's copy really has (P3).
struct Held {
  StateVersion version;  // invalid: holds nothing
  uint64_t digest = 0;   // of the state's bytes
  uint64_t step = 0;     // the program's label, for people
  bool valid() const { return version.valid(); }
  friend bool operator==(const Held&, const Held&) = default;
};

// Where something listens for data connections: a numeric IPv4 or IPv6 address and a port.
struct Endpoint {
  std::string address;
  uint16_t port = 0;
  bool valid() const { return port != 0; }
  auto operator<=>(const Endpoint&) const = default;
};

std::string ToString(ServerIncarnation id);
std::string ToString(GenerationNumber number);      // `7`
std::string ToString(const GenerationId& id);       // `7 (server 1, roster 1f2e3d4c)`
std::string ToString(WorkerIncarnation id);         // `3.12`
std::string ToString(const StateVersion& version);  // `(7, 120)`, or `none`
std::string ToString(const Endpoint& endpoint);     // `127.0.0.1:4000`, `[::1]:4000`

}  // namespace elastic::internal
