#include "rendezvous/client/agent_link.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/client/link_stream.h"

namespace elastic::internal {

namespace {

constexpr std::chrono::milliseconds kRetryDelayFirst{50};
constexpr std::chrono::milliseconds kRetryDelayMax{1000};
// How long one attempt to connect may take, and how soon a connection without a peer is noticed.
constexpr int kConnectMilliseconds = 1000;
constexpr int kKeepaliveMilliseconds = 2000;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  // Each attempt has a connection of its own: the delays between attempts are ours, not those of
  // a shared connection that remembers its failures.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kControlMessageBytesMax));
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

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

class AgentLink::Impl final : public LinkOwner, public std::enable_shared_from_this<Impl> {
 public:
  Impl(Options options, Callbacks callbacks)
      : options_(std::move(options)), callbacks_(std::move(callbacks)) {}

  void Connect();
  void Send(AgentReport report);
  void Stop();

  // LinkOwner, from gRPC's threads, one at a time.
  void OnWelcome(AgentIncarnation agent) override;
  void OnDirective(Directive directive) override;
  void OnStreamEnd(Status status) override;

 private:
  void RetryLater();

  const Options options_;
  const Callbacks callbacks_;

  Mutex mutex_;
  ConditionVariable idle_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;
  bool active_ GUARDED_BY(mutex_) = false;  // a stream or a timer will call back
  AgentIncarnation agent_ GUARDED_BY(mutex_);
  std::chrono::milliseconds retry_delay_ GUARDED_BY(mutex_){0};
  std::optional<AgentReport> newest_ GUARDED_BY(mutex_);
  std::shared_ptr<LinkStream> stream_ GUARDED_BY(mutex_);
  std::shared_ptr<grpc::Alarm> alarm_ GUARDED_BY(mutex_);
};

void AgentLink::Impl::Connect() {
  std::shared_ptr<LinkStream> stream;
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      active_ = false;
      idle_.notify_all();
      return;
    }
    v1::AgentHello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_job_id(options_.job_id);
    hello.set_host(options_.host);
    hello.set_slots(options_.slots);
    hello.set_previous_incarnation(agent_.value);
    stream = std::make_shared<LinkStream>(MakeChannel(options_.server), std::move(hello),
                                          shared_from_this());
    stream_ = stream;
    active_ = true;
  }
  stream->Begin();
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

void AgentLink::Impl::OnWelcome(AgentIncarnation agent) {
  std::shared_ptr<LinkStream> stream;
  std::optional<AgentReport> report;
  {
    MutexLock lock(mutex_);
    agent_ = agent;
    retry_delay_ = std::chrono::milliseconds(0);
    // What was said in an earlier life is not the state of this one.
    if (newest_.has_value() && newest_->agent == agent) {
      report = newest_;
      stream = stream_;
    }
  }
  if (stream != nullptr) {
    stream->Send(std::move(*report));
  }
  callbacks_.registered(agent);
}

void AgentLink::Impl::OnDirective(Directive directive) {
  callbacks_.directive(std::move(directive));
}

void AgentLink::Impl::OnStreamEnd(Status status) {
  bool quiet = false;
  const bool repeat = MayRepeat(status.code());
  {
    MutexLock lock(mutex_);
    stream_.reset();
    quiet = stopping_;
    refused_ = refused_ || !repeat;
  }
  if (!quiet) {
    (repeat ? callbacks_.lost : callbacks_.refused)(status);
  }
  if (!quiet && repeat) {
    RetryLater();
    return;
  }
  MutexLock lock(mutex_);
  active_ = false;
  idle_.notify_all();
}

void AgentLink::Impl::RetryLater() {
  auto alarm = std::make_shared<grpc::Alarm>();
  std::chrono::milliseconds delay;
  {
    MutexLock lock(mutex_);
    delay = retry_delay_;
    retry_delay_ = std::clamp(2 * retry_delay_, kRetryDelayFirst, kRetryDelayMax);
    alarm_ = alarm;
  }
  // The timer also takes the first attempt, at once, off the callback of the stream that ended.
  alarm->Set(std::chrono::system_clock::now() + delay,
             [self = shared_from_this()](bool /*ok*/) { self->Connect(); });
}

void AgentLink::Impl::Stop() {
  std::shared_ptr<LinkStream> stream;
  std::shared_ptr<grpc::Alarm> alarm;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stream = stream_;
    alarm = alarm_;
  }
  if (stream != nullptr) {
    stream->Cancel();
  }
  if (alarm != nullptr) {
    alarm->Cancel();
  }
  MutexLock lock(mutex_);
  while (active_) {
    idle_.wait(mutex_);
  }
}

AgentLink::AgentLink(Options options, Callbacks callbacks)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(callbacks))) {
  RouteGrpcLog();
  impl_->Connect();
}
AgentLink::~AgentLink() { impl_->Stop(); }
void AgentLink::Send(AgentReport report) { impl_->Send(std::move(report)); }

}  // namespace elastic::internal
