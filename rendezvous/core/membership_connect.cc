#include <optional>
#include <utility>

#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

namespace {
std::string HostList(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += (text.empty() ? "" : ", ") + host.spec.name;
  }
  return text;
}
}  // namespace

// Why this stream is not taken, whatever the agent knows or was given.
std::optional<Status> Membership::State::Refusal(const AgentConnected& event,
                                                 const Host* host) const {
  if (host == nullptr) {
    return NotFoundError(
        StrCat("host '", event.host, "' is not part of this job; -H names ", HostList(hosts)));
  }
  if (event.slots < host->spec.slots) {
    return FailedPreconditionError(StrCat("the agent of host '", event.host, "' can run ",
                                          event.slots, " of the ", host->spec.slots,
                                          " workers that -H asks for"));
  }
  if (event.seen > incarnation) {
    // Nothing is wrong with the agent: it goes on, and asks again where its newer server is.
    return UnavailableError(StrCat("this is server ", incarnation.value,
                                   " of the job, and a newer one has taken over"));
  }
  if (event.previous.value != 0 && event.previous < host->agent) {
    return AbortedError(StrCat("a newer agent has registered for host '", event.host,
                               "': this one must end its workers"));
  }
  return std::nullopt;
}

// A reconnect within the agent's life keeps its incarnation; anything else is a new life, and the
// newest registration of a host wins (P2). The older agent's workers count as dead only when
// reported or by P11, though nothing will ever be heard of them again.
void Membership::State::OnConnected(const AgentConnected& event) {
  Host* host = FindHost(event.host);
  if (std::optional<Status> refusal = Refusal(event, host)) {
    Emit(RefuseAgent{event.connection, std::move(*refusal)});
    return;
  }
  if (host->agent.value == 0 && event.previous > agents_issued) {
    const std::string text =
        StrCat("the agent of host ", event.host, " says that it is agent ", event.previous.value,
               ", but the newest that was issued is ", agents_issued.value);
    Say(Severity::kWarning, text + ": it is refused");
    Emit(RefuseAgent{event.connection,
                     InvalidArgumentError(text + ": end the workers and register anew")});
    return;
  }
  if (event.previous.value == 0 && !AgentNumberLeft()) {
    EndWithoutNumbers("agent numbers");
    Emit(RefuseAgent{event.connection, FailedPreconditionError(ending->reason)});
    return;
  }
  host->start_failure.reset();
  if (event.previous.value != 0 && host->agent.value == 0) {
    // An agent that outlived the server's predecessor keeps the identity its workers are named by.
    host->agent = event.previous;
    host->outlived = true;
  } else if (event.previous.value == 0 || event.previous != host->agent) {
    if (host->connection) {
      Emit(RefuseAgent{*host->connection,
                       AbortedError(StrCat("a newer agent has registered for host '", event.host,
                                           "': this one must end its workers"))});
    }
    ++agents_issued.value;
    const HostSpec kept = host->spec;
    *host = Host{.spec = kept, .agent = agents_issued};
    PersistNow();
  }
  host->replaces = event.replaces;
  host->connection = event.connection;
  host->stream_ended.reset();
  host->told.reset();
  host->ack_reference = now;
  heard[host->agent] = now;
  Emit(AdmitAgent{event.connection, host->agent});
  publish_all = true;
}

void Membership::State::OnDisconnected(const AgentDisconnected& event) {
  if (Host* host = HostOf(event.connection)) {
    host->connection.reset();
    host->stream_ended = now;
  }
}

void Membership::State::OnStartFailed(const AgentStartFailed& event) {
  if (Host* host = FindHost(event.host)) {
    host->start_failure = event.message;
    Say(Severity::kWarning, StrCat("host ", event.host, " has no agent: ", event.message));
    publish_all = true;
  }
}

}  // namespace elastic::internal
