#include "rendezvous/client/agent_link.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/sched_slice.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/client/job_channel.h"
#include "rendezvous/client/link_stream.h"

namespace elastic::internal {

namespace {

constexpr Duration kRetryDelayFirst = std::chrono::milliseconds(50);
constexpr Duration kRetryDelayMax = std::chrono::milliseconds(400);

// Whether an agent may try again, or has been told that it never will be right.
bool MayRepeat(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAborted: return false;
    default: return true;
  }
}

}  // namespace

// A thread of the link's own opens streams one after the other and waits between them. It alone
// drops a stream and with it the channel: dropped in a callback, the last channel of the process
// would make gRPC 1.51 join the thread that runs the callback, and abort.
class AgentLink::Impl final : public LinkOwner {
 public:
  Impl(Options options, Callbacks callbacks)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        thread_([this] { Run(); }) {}
  ~Impl() override;

  void Send(AgentReport report);

  // LinkOwner, from gRPC's threads, one at a time.
  void OnWelcome(AgentIncarnation agent, ServerIncarnation server) override;
  void OnDirective(Directive directive) override;
  void OnStreamEnd(Status status) override;

 private:
  void Run();
  std::shared_ptr<LinkStream> NewStream();
  Status WaitForEnd();
  bool WaitBeforeRetry();  // false: stopping

  const Options options_;
  const Callbacks callbacks_;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  AgentIncarnation agent_ GUARDED_BY(mutex_);
  ServerIncarnation server_seen_ GUARDED_BY(mutex_);
  Duration retry_delay_ GUARDED_BY(mutex_){0};
  std::optional<AgentReport> newest_ GUARDED_BY(mutex_);
  std::shared_ptr<LinkStream> stream_ GUARDED_BY(mutex_);
  std::optional<Status> end_ GUARDED_BY(mutex_);  // of stream_
  std::thread thread_;
};

void AgentLink::Impl::Run() {
  if (const Status status = RequestShortSlice(SliceInheritance::kInherited); !status.ok()) {
    LogDebug("agent link keeps the default time slice: ", status.message());
  }
  do {
    NewStream()->Begin();
    const Status end = WaitForEnd();
    {
      MutexLock lock(mutex_);
      if (stopping_) {
        return;
      }
    }
    if (!MayRepeat(end.code())) {
      callbacks_.refused(end);
      return;
    }
    callbacks_.lost(end);
  } while (WaitBeforeRetry());
}

std::shared_ptr<LinkStream> AgentLink::Impl::NewStream() {
  MutexLock lock(mutex_);
  v1::AgentHello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job_id(options_.job_id);
  hello.set_host(options_.host);
  hello.set_slots(options_.slots);
  hello.set_previous_incarnation(agent_.value);
  hello.set_server_seen(server_seen_.value);
  hello.set_replaces(options_.replaces);
  stream_ = std::make_shared<LinkStream>(MakeJobChannel(options_.server), std::move(hello), *this);
  end_.reset();
  return stream_;
}

Status AgentLink::Impl::WaitForEnd() {
  std::shared_ptr<LinkStream> ended;  // dropped after the lock, here
  MutexLock lock(mutex_);
  bool cancelled = false;
  while (!end_.has_value()) {
    if (stopping_ && !std::exchange(cancelled, true)) {
      stream_->Cancel();
    }
    changed_.wait(mutex_);
  }
  ended = std::move(stream_);
  return *end_;
}

bool AgentLink::Impl::WaitBeforeRetry() {
  MutexLock lock(mutex_);
  const Instant until = Now() + retry_delay_;
  retry_delay_ = std::clamp(2 * retry_delay_, kRetryDelayFirst, kRetryDelayMax);
  while (!stopping_) {
    const Duration left = until - Now();
    if (left <= Duration::zero()) {
      return true;
    }
    changed_.wait_for(mutex_, left);
  }
  return false;
}

void AgentLink::Impl::Send(AgentReport report) {
  std::shared_ptr<LinkStream> stream;
  {
    MutexLock lock(mutex_);
    newest_ = report;
    stream = stream_;
  }
  if (stream != nullptr) {
    stream->Send(std::move(report));
  }
}

void AgentLink::Impl::OnWelcome(AgentIncarnation agent, ServerIncarnation server) {
  std::shared_ptr<LinkStream> stream;
  std::optional<AgentReport> report;
  {
    MutexLock lock(mutex_);
    agent_ = agent;
    server_seen_ = std::max(server_seen_, server);
    retry_delay_ = Duration::zero();
    // What was said in an earlier life is not the state of this one.
    if (newest_.has_value() && newest_->agent == agent) {
      report = newest_;
      stream = stream_;
    }
  }
  if (stream != nullptr) {
    stream->Send(std::move(*report));
  }
  callbacks_.registered(agent, server);
}

void AgentLink::Impl::OnDirective(Directive directive) {
  callbacks_.directive(std::move(directive));
}

void AgentLink::Impl::OnStreamEnd(Status status) {
  MutexLock lock(mutex_);
  end_ = std::move(status);
  changed_.notify_all();
}

AgentLink::Impl::~Impl() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

AgentLink::AgentLink(Options options, Callbacks callbacks) {
  RouteGrpcLog();
  impl_ = std::make_unique<Impl>(std::move(options), std::move(callbacks));
}
AgentLink::~AgentLink() = default;
void AgentLink::Send(AgentReport report) { impl_->Send(std::move(report)); }

}  // namespace elastic::internal
