#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "elastic/v1/rendezvous.pb.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/server/job_slot.h"

namespace elastic::internal {

// The server's end of one agent's stream: checks and converts what comes and posts it to the
// driver; keeps the newest directive until the stream can take it. gRPC 1.51 aborts now and then
// when a write is started before the one before is done, so there is one outbox and one flag, and a
// write is started only by whoever has set that flag. The stream is finished in the same way, after
// what waits in the outbox. It owns itself from Begin until OnDone.
class AgentStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>,
                          public AgentSink,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  // `jobs` and `open_streams`, the number of streams there are, must outlive the stream.
  AgentStream(JobSlot& jobs, std::atomic<int>& open_streams);
  ~AgentStream() override;

  void Begin();

  // AgentSink, from the driver thread.
  void Welcome(ServerIncarnation server, AgentIncarnation agent) override;
  void Deliver(Directive directive) override;
  void Close(Status reason) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Take(const v1::AgentMessage& message);
  Status Greet(const v1::AgentHello& hello);
  Status Report(const v1::AgentReport& proto);
  void PostGone();
  // Starts the next write, or finishes, if nothing is on its way.
  void Pump();

  JobSlot& jobs_;
  std::atomic<int>& open_streams_;
  std::shared_ptr<AgentStream> self_;  // keeps the reactor while gRPC knows it

  // Of gRPC's read callbacks, which come one at a time.
  v1::AgentMessage in_;
  std::shared_ptr<ServedJob> job_;  // since the hello
  std::optional<ConnectionId> connection_;
  std::string host_;
  bool gone_ = false;

  // Of whoever has set writing_.
  v1::ServerMessage out_;
  KnownRosters known_;

  Mutex mutex_;
  std::optional<v1::Welcome> welcome_ GUARDED_BY(mutex_);
  std::optional<Directive> directive_ GUARDED_BY(mutex_);
  std::optional<Status> close_reason_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace elastic::internal
