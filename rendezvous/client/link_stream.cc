#include "rendezvous/client/link_stream.h"

#include <utility>

#include "rendezvous/client/grpc_status.h"

namespace elastic::internal {

LinkStream::LinkStream(std::shared_ptr<grpc::Channel> channel, v1::AgentHello hello,
                       LinkOwner& owner)
    : stub_(v1::Agents::NewStub(channel)), owner_(owner) {
  *out_.mutable_hello() = std::move(hello);
}

void LinkStream::Begin() {
  {
    MutexLock lock(mutex_);
    writing_ = true;
  }
  stub_->async()->Connect(&context_, this);
  // Writes come from other threads too: without this hold gRPC could call OnDone below them. It is
  // given back when reading ends, and each such write has a hold of its own.
  AddHold();
  StartWrite(&out_);
  StartRead(&in_);
  StartCall();
}

void LinkStream::Send(AgentReport report) {
  {
    MutexLock lock(mutex_);
    report_ = std::move(report);
  }
  Pump();
}

void LinkStream::Cancel() { context_.TryCancel(); }

void LinkStream::Pump() {
  std::optional<AgentReport> report;
  {
    MutexLock lock(mutex_);
    if (writing_ || ended_ || !welcomed_ || !report_.has_value()) {
      return;
    }
    report = std::exchange(report_, std::nullopt);
    writing_ = true;
    AddHold();
  }
  *out_.mutable_report() = ToProto(*report);
  StartWrite(&out_);
  RemoveHold();
}

void LinkStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    ended_ = ended_ || !ok;
  }
  Pump();
}

void LinkStream::OnReadDone(bool ok) {
  if (ok) {
    const Status status = Take(in_);
    if (status.ok()) {
      StartRead(&in_);
      return;
    }
    own_reason_ = status;
    context_.TryCancel();
  }
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  RemoveHold();
}

Status LinkStream::Take(const v1::ServerMessage& message) {
  if (message.has_welcome()) {
    {
      MutexLock lock(mutex_);
      welcomed_ = true;
    }
    owner_.OnWelcome(AgentIncarnation{message.welcome().agent()},
                     ServerIncarnation{message.welcome().server_incarnation()});
    Pump();
    return OkStatus();
  }
  if (!message.has_directive()) {
    return InvalidArgumentError("the server sent what is neither welcome nor directive");
  }
  ASSIGN_OR_RETURN(Directive directive, FromProto(message.directive(), known_));
  known_ = {directive.installed, directive.prepared};
  owner_.OnDirective(std::move(directive));
  return OkStatus();
}

void LinkStream::OnDone(const grpc::Status& status) {
  if (!own_reason_.ok()) {
    owner_.OnStreamEnd(own_reason_);
  } else if (status.ok()) {
    owner_.OnStreamEnd(UnavailableError("the server ended the stream"));
  } else {
    owner_.OnStreamEnd(FromGrpc(status));
  }
}

}  // namespace elastic::internal
