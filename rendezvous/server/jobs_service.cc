#include "rendezvous/server/jobs_service.h"

#include <utility>

#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_status.h"
#include "rendezvous/server/watch_stream.h"

namespace elastic::internal {

namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context, const Status& status) {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

JobsService::JobsService(JobSlot& jobs) : jobs_(jobs) {}

StatusOr<std::shared_ptr<ServedJob>> JobsService::Take(const v1::SubmitRequest& request) {
  if (request.protocol_version() != kProtocolVersion) {
    return FailedPreconditionError(StrCat("elastic-run speaks protocol version ",
                                          request.protocol_version(), ", this server ",
                                          kProtocolVersion, ": install the same version of both"));
  }
  ASSIGN_OR_RETURN(const JobSpec job, FromProto(request.job()));
  RETURN_IF_ERROR(CheckJob(job));
  return jobs_.Submit(job, ServerIncarnation{request.newest_server()});
}

StatusOr<std::shared_ptr<ServedJob>> JobsService::Find(const std::string& job_id) const {
  std::shared_ptr<ServedJob> job = jobs_.Get();
  if (job == nullptr || job->spec().job_id != job_id) {
    return NotFoundError("this server does not know job `" + job_id + "`");
  }
  return job;
}

Status JobsService::Tell(const std::string& job_id, Event event) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<ServedJob> job, Find(job_id));
  return job->driver().Post(std::move(event))
             ? OkStatus()
             : UnavailableError("the server is stopping or its queue is full");
}

grpc::ServerUnaryReactor* JobsService::Submit(grpc::CallbackServerContext* context,
                                              const v1::SubmitRequest* request,
                                              v1::SubmitResponse* response) {
  const auto job = Take(*request);
  if (job.ok()) {
    response->set_server_incarnation((*job)->incarnation().value);
    response->set_status_address(status_address_);
  }
  return Answer(*context, job.status());
}

grpc::ServerWriteReactor<v1::JobEvent>* JobsService::Watch(grpc::CallbackServerContext* /*context*/,
                                                           const v1::WatchRequest* request) {
  auto job = Find(request->job_id());
  if (job.ok() && (*job)->incarnation().value != request->server_incarnation()) {
    job = NotFoundError("this server has another life of job `" + request->job_id() + "`");
  }
  const auto stream = std::make_shared<WatchStream>(request->after());
  if (job.ok()) {
    stream->Begin(*job);
  } else {
    stream->Refuse(job.status());
  }
  return stream.get();
}

grpc::ServerUnaryReactor* JobsService::Stop(grpc::CallbackServerContext* context,
                                            const v1::StopRequest* request,
                                            v1::StopResponse* /*response*/) {
  const StatusOr<StopRequested> stop = FromProto(*request);
  return Answer(*context, stop.ok() ? Tell(request->job_id(), *stop) : stop.status());
}

grpc::ServerUnaryReactor* JobsService::ReportStartFailure(grpc::CallbackServerContext* context,
                                                          const v1::StartFailure* request,
                                                          v1::StartFailureResponse* /*response*/) {
  return Answer(*context,
                Tell(request->job_id(), AgentStartFailed{request->host(), request->message()}));
}

}  // namespace elastic::internal
