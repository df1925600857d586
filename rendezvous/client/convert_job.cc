#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

constexpr int kSeverityOffset = 1;  // ours begin at 0, the wire's at 1

StatusOr<HostSpec> FromProto(const v1::JobHost& proto) {
  RETURN_IF_ERROR(CheckHostName("job.hosts.name", proto.name()));
  RETURN_IF_ERROR(CheckRange("job.hosts.slots", proto.slots(), 1, kSlotsPerHostMax));
  return HostSpec{.name = proto.name(), .slots = proto.slots()};
}

}  // namespace

v1::Job ToProto(const JobSpec& job) {
  v1::Job proto;
  proto.set_job_id(Utf8(job.job_id));
  proto.set_np(job.np);
  proto.set_min_np(job.min_np);
  proto.set_max_np(job.max_np);
  for (const HostSpec& host : job.hosts) {
    v1::JobHost& added = *proto.add_hosts();
    added.set_name(Utf8(host.name));
    added.set_slots(host.slots);
  }
  *proto.mutable_heartbeat_timeout() = ToProto(job.heartbeat_timeout);
  *proto.mutable_start_timeout() = ToProto(job.start_timeout);
  *proto.mutable_elastic_timeout() = ToProto(job.elastic_timeout);
  *proto.mutable_entry_timeout() = ToProto(job.entry_timeout);
  *proto.mutable_orphan_limit() = ToProto(job.orphan_limit);
  *proto.mutable_grace_period() = ToProto(job.grace_period);
  proto.set_no_progress_limit(job.no_progress_limit);
  proto.set_allow_restart_from_zero(job.allow_restart_from_zero);
  return proto;
}

StatusOr<JobSpec> FromProto(const v1::Job& proto) {
  JobSpec job{.job_id = proto.job_id(),
              .np = proto.np(),
              .min_np = proto.min_np(),
              .max_np = proto.max_np(),
              .no_progress_limit = proto.no_progress_limit(),
              .allow_restart_from_zero = proto.allow_restart_from_zero()};
  RETURN_IF_ERROR(CheckRange("job.hosts count", proto.hosts_size(), 1, kHostsMax));
  for (const v1::JobHost& host : proto.hosts()) {
    ASSIGN_OR_RETURN(HostSpec spec, FromProto(host));
    job.hosts.push_back(std::move(spec));
  }
  ASSIGN_OR_RETURN(job.heartbeat_timeout,
                   FromProto(proto.heartbeat_timeout(), "job.heartbeat_timeout"));
  ASSIGN_OR_RETURN(job.start_timeout, FromProto(proto.start_timeout(), "job.start_timeout"));
  ASSIGN_OR_RETURN(job.elastic_timeout, FromProto(proto.elastic_timeout(), "job.elastic_timeout"));
  ASSIGN_OR_RETURN(job.entry_timeout, FromProto(proto.entry_timeout(), "job.entry_timeout"));
  ASSIGN_OR_RETURN(job.orphan_limit, FromProto(proto.orphan_limit(), "job.orphan_limit"));
  ASSIGN_OR_RETURN(job.grace_period, FromProto(proto.grace_period(), "job.grace_period"));
  return job;
}

v1::NoteSeverity ToProto(Severity severity) {
  return EnumTo<v1::NoteSeverity>(severity, kSeverityOffset);
}

StatusOr<Severity> FromProto(v1::NoteSeverity severity) {
  return EnumFrom<Severity>(severity, v1::NoteSeverity_IsValid, "note.severity",
                            Unspecified::kRefused, kSeverityOffset);
}

v1::StopRequest ToProto(const StopRequested& stop, const std::string& job_id) {
  v1::StopRequest proto;
  proto.set_job_id(job_id);
  proto.set_mode(EnumTo<v1::StopMode>(stop.mode));
  proto.set_reason(Utf8(stop.reason));
  proto.set_exit_code(stop.exit_code);
  return proto;
}

StatusOr<StopRequested> FromProto(const v1::StopRequest& proto) {
  StopRequested stop{.reason = proto.reason(), .exit_code = proto.exit_code()};
  ASSIGN_OR_RETURN(stop.mode, EnumFrom<StopMode>(proto.mode(), v1::StopMode_IsValid, "stop.mode"));
  RETURN_IF_ERROR(CheckRange("stop.exit_code", proto.exit_code(), 0, 255));
  return stop;
}

}  // namespace elastic::internal
