#include "rendezvous/server/agent_stream.h"

#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/client/convert_fields.h"
#include "rendezvous/client/grpc_status.h"

namespace elastic::internal {

AgentStream::AgentStream(JobSlot& jobs, std::atomic<int>& open_streams)
    : jobs_(jobs), open_streams_(open_streams) {
  ++open_streams_;
}

AgentStream::~AgentStream() { --open_streams_; }

void AgentStream::Begin() {
  self_ = shared_from_this();
  if (open_streams_ > kAgentStreamsMax) {
    Close(ResourceExhaustedError(StrCat("this server has ", kAgentStreamsMax,
                                        " open streams of agents (kAgentStreamsMax) already")));
    return;
  }
  StartRead(&in_);
}

void AgentStream::Welcome(ServerIncarnation server, AgentIncarnation agent) {
  {
    MutexLock lock(mutex_);
    welcome_.emplace();
    welcome_->set_agent(agent.value);
    welcome_->set_server_incarnation(server.value);
  }
  Pump();
}

void AgentStream::Deliver(Directive directive) {
  {
    MutexLock lock(mutex_);
    directive_ = std::move(directive);
  }
  Pump();
}

void AgentStream::Close(Status reason) {
  {
    MutexLock lock(mutex_);
    if (close_reason_.has_value()) {
      return;
    }
    close_reason_ = std::move(reason);
  }
  Pump();
}

void AgentStream::OnReadDone(bool ok) {
  if (ok) {
    Take(in_);
    return;
  }
  PostGone();
  Close(OkStatus());
}

void AgentStream::Take(const v1::AgentMessage& message) {
  Status status;
  if (message.has_hello()) {
    status = Greet(message.hello());
  } else if (message.has_report()) {
    status = Report(message.report());
  } else {
    status = InvalidArgumentError("a message that is neither hello nor report");
  }
  if (status.ok()) {
    StartRead(&in_);
    return;
  }
  const bool comes_again = status.code() == StatusCode::kUnavailable;
  Log(comes_again ? Severity::kDebug : Severity::kWarning, "stream of agent ",
      host_.empty() ? "(no name yet)" : host_, ": ", status.message());
  PostGone();
  Close(std::move(status));
}

namespace {

// A standing server that does not have the job may get it, since its launcher will submit it again.
StatusOr<std::shared_ptr<ServedJob>> JobOf(const std::string& job_id,
                                           std::shared_ptr<ServedJob> job) {
  if (job == nullptr) {
    return UnavailableError("no job has been submitted to this server yet");
  }
  if (job->spec().job_id == job_id) {
    return job;
  }
  const std::string text = "the agent was started for job `" + job_id + "`, this server runs `" +
                           job->spec().job_id + "`";
  return job->submitted() ? UnavailableError(text) : FailedPreconditionError(text);
}

}  // namespace

Status AgentStream::Greet(const v1::AgentHello& hello) {
  if (connection_.has_value()) {
    return InvalidArgumentError("a second hello on one stream");
  }
  if (hello.protocol_version() != kProtocolVersion) {
    return FailedPreconditionError(
        StrCat("the agent speaks protocol version ", hello.protocol_version(), ", this server ",
               kProtocolVersion, ": install the same version of elastic-run on every host"));
  }
  ASSIGN_OR_RETURN(job_, JobOf(hello.job_id(), jobs_.Get()));
  RETURN_IF_ERROR(CheckHostName("hello.host", hello.host()));
  RETURN_IF_ERROR(CheckRange("hello.slots", hello.slots(), 1, kSlotsPerHostMax));
  host_ = hello.host();
  connection_ = job_->driver().NextConnection();
  AgentConnected event{.host = host_,
                       .slots = hello.slots(),
                       .previous = AgentIncarnation{hello.previous_incarnation()},
                       .seen = ServerIncarnation{hello.server_seen()},
                       .replaces = hello.replaces()};
  if (!job_->driver().Open(*connection_, std::move(event), self_)) {
    return UnavailableError("the server is stopping or its queue is full");
  }
  return OkStatus();
}

Status AgentStream::Report(const v1::AgentReport& proto) {
  if (!connection_.has_value()) {
    return InvalidArgumentError("a report before the hello");
  }
  ASSIGN_OR_RETURN(AgentReport report, FromProto(proto));
  if (report.host != host_) {
    return InvalidArgumentError("report.host is `" + report.host + "`, the hello said `" + host_ +
                                "`");
  }
  // A full queue loses this report; the next one has all that it said.
  job_->driver().Post(AgentReported{*connection_, std::move(report)});
  return OkStatus();
}

void AgentStream::PostGone() {
  if (connection_.has_value() && !std::exchange(gone_, true)) {
    job_->driver().Post(AgentDisconnected{*connection_});
  }
}

void AgentStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {
      welcome_.reset();
      directive_.reset();
      close_reason_ = close_reason_.value_or(UnavailableError("the stream broke"));
    }
  }
  Pump();
}

void AgentStream::Pump() {
  std::optional<v1::Welcome> welcome;
  std::optional<Directive> directive;
  std::optional<Status> finish;
  {
    MutexLock lock(mutex_);
    if (writing_ || finished_) {
      return;
    }
    if (welcome_.has_value()) {
      welcome = std::exchange(welcome_, std::nullopt);
    } else if (directive_.has_value()) {
      directive = std::exchange(directive_, std::nullopt);
    } else if (close_reason_.has_value()) {
      finish = close_reason_;
    } else {
      return;
    }
    writing_ = !finish.has_value();
    finished_ = finish.has_value();
  }
  if (finish.has_value()) {
    Finish(ToGrpc(*finish));
    return;
  }
  if (welcome.has_value()) {
    *out_.mutable_welcome() = std::move(*welcome);
  } else {
    *out_.mutable_directive() = ToProto(*directive, known_);
    known_ = {std::move(directive->installed), std::move(directive->prepared)};
  }
  StartWrite(&out_);
}

void AgentStream::OnCancel() {
  Close(CancelledError("the agent or the connection ended the stream"));
}

void AgentStream::OnDone() {
  PostGone();
  self_.reset();
}

}  // namespace elastic::internal
