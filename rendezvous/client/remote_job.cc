#include "rendezvous/client/remote_job.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "elastic/v1/jobs.grpc.pb.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_deadline.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/client/job_channel.h"
#include "rendezvous/client/status_client.h"

namespace elastic::internal {

namespace {

constexpr Duration kSubmitLimit = std::chrono::seconds(5);
constexpr Duration kCallLimit = std::chrono::seconds(1);
constexpr Duration kRetryDelay = std::chrono::milliseconds(200);
constexpr Duration kStatusLimit = std::chrono::seconds(1);

using Stub = v1::Jobs::Stub;

Status NoServer(const std::string& server, const std::string& why) {
  return UnavailableError("no rendezvous server answers at " + server + " (--rendezvous): " + why);
}

// Like WaitForConnected, but a refused connection is known at once.
bool IsConnected(grpc::Channel& channel, Duration limit) {
  const gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), GrpcDeadline(limit));
  grpc_connectivity_state state = channel.GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || !channel.WaitForStateChange(state, deadline)) {
      return false;
    }
    state = channel.GetState(true);
  }
  return true;
}

template <class Request, class Response>
Status Call(Stub& stub,
            grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response* response) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kCallLimit));
  const grpc::Status status = (stub.*method)(&context, request, response);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return FailedPreconditionError(
        "what listens there is no standing rendezvous server, which "
        "`elastic-rendezvous` without -np and -H is (--rendezvous)");
  }
  return FromGrpc(status);
}

}  // namespace

class RemoteJob::Impl {
 public:
  Impl(Options options, Callbacks callbacks)
      : options_(std::move(options)), callbacks_(std::move(callbacks)) {}
  ~Impl();

  Status SubmitFirst();
  void Begin();
  void Post(const Event& event);
  std::string status_address() {
    MutexLock lock(mutex_);
    return status_address_;
  }

 private:
  // One connection: submits, then listens until it breaks or the job ends.
  Status Connect();
  void Listen();
  void RunListener();
  void RunSender();
  bool SendOne(const Event& event);
  void Take(const v1::JobEvent& event);
  void EndWith(End end);
  bool Wait(Duration time);  // false: this object ends

  const Options options_;
  const Callbacks callbacks_;

  // Of the listener's thread, before it begins of the caller's.
  uint64_t newest_server_ = 0, server_ = 0, seen_ = 0;
  bool told_away_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Stub> stub_ GUARDED_BY(mutex_);  // null: the server is away
  grpc::ClientContext* watching_ GUARDED_BY(mutex_) = nullptr;
  std::string status_address_ GUARDED_BY(mutex_);
  std::optional<StopRequested> stop_ GUARDED_BY(mutex_);  // told again to each life of the server
  std::deque<Event> unsent_ GUARDED_BY(mutex_);
  std::thread listener_, sender_;
};

// A life of the server is not used twice, so a request that may have come counts as one.
Status RemoteJob::Impl::Connect() {
  const auto channel = MakeJobChannel(options_.server);
  if (!IsConnected(*channel, kCallLimit)) {
    return UnavailableError("it cannot be connected to");
  }
  std::shared_ptr<Stub> stub = v1::Jobs::NewStub(channel);
  v1::SubmitRequest request;
  v1::SubmitResponse response;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_job() = ToProto(options_.job);
  request.set_newest_server(newest_server_++);
  const Status status = Call(*stub, &Stub::Submit, request, &response);
  RETURN_IF_ERROR(status);
  newest_server_ = std::max(newest_server_, response.server_incarnation());
  if (std::exchange(server_, response.server_incarnation()) != response.server_incarnation()) {
    seen_ = 0;
  }
  MutexLock lock(mutex_);
  stub_ = std::move(stub);
  status_address_ = response.status_address();
  if (stop_) {
    unsent_.push_back(*stop_);
  }
  changed_.notify_all();
  return OkStatus();
}

Status RemoteJob::Impl::SubmitFirst() {
  const Instant limit = Now() + kSubmitLimit;
  Status status = Connect();
  while (status.code() == StatusCode::kUnavailable && Now() < limit && Wait(kRetryDelay)) {
    status = Connect();
  }
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded
             ? NoServer(options_.server, status.message())
             : status;
}

void RemoteJob::Impl::Begin() {
  listener_ = std::thread([this] { RunListener(); });
  sender_ = std::thread([this] { RunSender(); });
}

void RemoteJob::Impl::RunListener() {
  while (true) {
    Listen();
    const Instant away_since = Now();
    Status status = UnavailableError("the connection broke");
    do {
      {
        MutexLock lock(mutex_);
        stub_.reset();
        if (stopping_ || ended_) {
          return;
        }
      }
      if (Now() >= away_since + options_.job.orphan_limit) {
        EndWith({static_cast<int>(JobExit::kStateLost),
                 StrCat("the rendezvous server at ", options_.server, " was away for ",
                        FormatDuration(options_.job.orphan_limit),
                        " (--orphan-limit): ", status.message()),
                 true});
        return;
      }
      status = Connect();
      if (!status.ok() && !std::exchange(told_away_, true)) {
        callbacks_.note(Severity::kWarning, StrCat("the rendezvous server at ", options_.server,
                                                   " is away, workers go on for ",
                                                   FormatDuration(options_.job.orphan_limit),
                                                   " (--orphan-limit): ", status.message()));
      }
    } while (!status.ok() && Wait(kRetryDelay));
    if (status.ok() && std::exchange(told_away_, false)) {
      callbacks_.note(Severity::kInfo,
                      StrCat("the rendezvous server at ", options_.server, " is back"));
    }
  }
}

void RemoteJob::Impl::Listen() {
  grpc::ClientContext context;
  std::shared_ptr<Stub> stub;
  {
    MutexLock lock(mutex_);
    if (stopping_ || stub_ == nullptr) {
      return;
    }
    stub = stub_;
    watching_ = &context;
  }
  v1::WatchRequest request;
  request.set_job_id(options_.job.job_id);
  request.set_server_incarnation(server_);
  request.set_after(seen_);
  const auto stream = stub->Watch(&context, request);
  v1::JobEvent event;
  while (stream->Read(&event)) {
    Take(event);
  }
  static_cast<void>(stream->Finish());
  MutexLock lock(mutex_);
  watching_ = nullptr;
}

void RemoteJob::Impl::Take(const v1::JobEvent& event) {
  seen_ = event.sequence();
  if (event.has_ended()) {
    EndWith({event.ended().exit_code(), event.ended().reason(), false});
  } else if (event.has_note()) {
    callbacks_.note(FromProto(event.note().severity()).value_or(Severity::kInfo),
                    event.note().text());
  }
}

void RemoteJob::Impl::EndWith(End end) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) {
      return;
    }
    changed_.notify_all();
  }
  callbacks_.ended(end);
}

void RemoteJob::Impl::Post(const Event& event) {
  const auto* stop = std::get_if<StopRequested>(&event);
  bool away = false;
  {
    MutexLock lock(mutex_);
    away = stub_ == nullptr;
    if (stop != nullptr) {
      stop_ = *stop;
    }
    if (!away) {
      unsent_.push_back(event);
      changed_.notify_all();
    }
  }
  if (away && stop != nullptr) {
    EndWith({stop->exit_code, stop->reason + "; the rendezvous server is away", true});
  }
}

void RemoteJob::Impl::RunSender() {
  while (true) {
    Event event;
    {
      MutexLock lock(mutex_);
      while (unsent_.empty() && !stopping_) {
        changed_.wait(mutex_);
      }
      if (stopping_) {
        return;
      }
      event = unsent_.front();
      unsent_.pop_front();
    }
    // What a lost server was not told is told to the next one if it still matters: a stop.
    SendOne(event);
  }
}

bool RemoteJob::Impl::SendOne(const Event& event) {
  std::shared_ptr<Stub> stub;
  {
    MutexLock lock(mutex_);
    stub = stub_;
  }
  if (stub == nullptr) {
    return false;
  }
  if (const auto* stop = std::get_if<StopRequested>(&event)) {
    v1::StopResponse response;
    return Call(*stub, &Stub::Stop, ToProto(*stop, options_.job.job_id), &response).ok();
  }
  if (const auto* failed = std::get_if<AgentStartFailed>(&event)) {
    v1::StartFailure request;
    v1::StartFailureResponse response;
    request.set_job_id(options_.job.job_id);
    request.set_host(failed->host);
    request.set_message(failed->message);
    return Call(*stub, &Stub::ReportStartFailure, request, &response).ok();
  }
  return false;
}

bool RemoteJob::Impl::Wait(Duration time) {
  const Instant until = Now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && !ended_) {
    const Duration left = until - Now();
    if (left <= Duration::zero()) {
      return true;
    }
    changed_.wait_for(mutex_, left);
  }
  return false;
}

RemoteJob::Impl::~Impl() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (watching_ != nullptr) {
      watching_->TryCancel();
    }
  }
  for (std::thread* thread : {&listener_, &sender_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

StatusOr<std::unique_ptr<RemoteJob>> RemoteJob::Submit(Options options, Callbacks callbacks) {
  RouteGrpcLog();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(callbacks));
  RETURN_IF_ERROR(impl->SubmitFirst());
  impl->Begin();
  return std::unique_ptr<RemoteJob>(new RemoteJob(std::move(impl)));
}

RemoteJob::RemoteJob(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RemoteJob::~RemoteJob() = default;
std::string RemoteJob::status_address() const { return impl_->status_address(); }
void RemoteJob::Post(const Event& event) { impl_->Post(event); }

Held RemoteJob::Newest() const {
  const auto view = GetStatus(status_address(), kStatusLimit);
  return view.ok() ? view->newest : Held{};
}

}  // namespace elastic::internal
