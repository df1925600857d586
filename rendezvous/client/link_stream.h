#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "elastic/v1/rendezvous.grpc.pb.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/client/convert.h"

namespace elastic::internal {

// What an agent's stream tells its link; from gRPC's threads, one call at a time, OnStreamEnd last.
class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  virtual void OnWelcome(AgentIncarnation agent, ServerIncarnation server) = 0;
  virtual void OnDirective(Directive directive) = 0;
  virtual void OnStreamEnd(Status status) = 0;
};

// The agent's end of one stream, from its hello to its end. One write is on its way at most, with
// the newest report behind it (see AgentStream, its mirror image). It lives at least until
// OnStreamEnd.
class LinkStream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  LinkStream(std::shared_ptr<grpc::Channel> channel, v1::AgentHello hello, LinkOwner& owner);

  void Begin();
  // From any thread; dropped when the stream has ended, kept until the server's welcome has come.
  void Send(AgentReport report);
  void Cancel();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  Status Take(const v1::ServerMessage& message);
  void Pump();

  const std::unique_ptr<v1::Agents::Stub> stub_;
  LinkOwner& owner_;
  grpc::ClientContext context_;

  // Of gRPC's read callbacks.
  v1::ServerMessage in_;
  KnownRosters known_;
  Status own_reason_;  // why we ended the stream ourselves

  v1::AgentMessage out_;  // of whoever has set writing_

  Mutex mutex_;
  bool welcomed_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::optional<AgentReport> report_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
