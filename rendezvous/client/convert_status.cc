#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

// Our states and reasons begin at 0, the wire's at 1.
constexpr int kEnumOffset = 1;
constexpr int kWorkersShownMax = 1 << 16;
constexpr int kResetsShownMax = 1 << 12;

v1::HostStatus HostToProto(const HostView& host) {
  v1::HostStatus proto;
  proto.set_name(Utf8(host.name));
  proto.set_registered(host.registered);
  proto.set_counted(host.counted);
  proto.set_agent(host.agent.value);
  proto.set_slots(host.slots);
  *proto.mutable_heartbeat_age() = ToProto(host.heartbeat_age);
  return proto;
}

StatusOr<HostView> HostFromProto(const v1::HostStatus& proto) {
  HostView host;
  host.name = proto.name();
  host.registered = proto.registered();
  host.counted = proto.counted();
  host.agent = AgentIncarnation{proto.agent()};
  host.slots = proto.slots();
  ASSIGN_OR_RETURN(host.heartbeat_age, FromProto(proto.heartbeat_age(), "host.heartbeat_age"));
  return host;
}

StatusOr<WorkerView> WorkerFromProto(const v1::WorkerStatus& proto) {
  WorkerView worker{.rank = proto.rank(), .host = proto.host()};
  ASSIGN_OR_RETURN(worker.report, FromProto(proto.report()));
  return worker;
}

v1::ResetStatus ResetToProto(const ResetView& reset) {
  v1::ResetStatus proto;
  proto.set_from(reset.from.value);
  proto.set_to(reset.to.value);
  proto.set_cause(Utf8(reset.cause));
  proto.set_size_before(reset.size_before);
  proto.set_size_after(reset.size_after);
  if (reset.resumed != Held{}) {
    *proto.mutable_resumed() = ToProto(reset.resumed);
  }
  *proto.mutable_answers() = ToProto(reset.answers);
  *proto.mutable_form() = ToProto(reset.form);
  *proto.mutable_enter() = ToProto(reset.enter);
  proto.set_complete(reset.complete);
  return proto;
}

StatusOr<ResetView> ResetFromProto(const v1::ResetStatus& proto) {
  ResetView reset;
  reset.from = GenerationNumber{proto.from()};
  reset.to = GenerationNumber{proto.to()};
  reset.cause = proto.cause();
  reset.size_before = proto.size_before();
  reset.size_after = proto.size_after();
  ASSIGN_OR_RETURN(reset.resumed, FromProto(proto.resumed()));
  ASSIGN_OR_RETURN(reset.answers, FromProto(proto.answers(), "reset.answers"));
  ASSIGN_OR_RETURN(reset.form, FromProto(proto.form(), "reset.form"));
  ASSIGN_OR_RETURN(reset.enter, FromProto(proto.enter(), "reset.enter"));
  reset.complete = proto.complete();
  return reset;
}

v1::Wait WaitToProto(const Wait& wait, const std::string& text, Instant now) {
  v1::Wait proto;
  proto.set_reason(EnumTo<v1::WaitReason>(wait.reason, kEnumOffset));
  proto.set_have(wait.have);
  proto.set_want(wait.want);
  for (const std::string& who : wait.who) {
    proto.add_who(Utf8(who));
  }
  if (wait.until.has_value()) {
    *proto.mutable_remaining() = ToProto(*wait.until - now);
  }
  proto.set_text(Utf8(text));
  return proto;
}

StatusOr<Wait> WaitFromProto(const v1::Wait& proto, Instant now) {
  Wait wait;
  ASSIGN_OR_RETURN(wait.reason,
                   EnumFrom<WaitReason>(proto.reason(), v1::WaitReason_IsValid, "wait.reason",
                                        Unspecified::kRefused, kEnumOffset));
  wait.have = proto.have();
  wait.want = proto.want();
  wait.who.assign(proto.who().begin(), proto.who().end());
  if (proto.has_remaining()) {
    ASSIGN_OR_RETURN(Duration remaining, FromProto(proto.remaining(), "wait.remaining"));
    wait.until = now + remaining;
  }
  return wait;
}

}  // namespace

v1::JobStatus ToProto(const JobView& view, Instant now) {
  v1::JobStatus proto;
  proto.set_job_id(Utf8(view.job_id));
  proto.set_state(EnumTo<v1::JobState>(view.state, kEnumOffset));
  *proto.mutable_wait() = WaitToProto(view.wait, view.wait_text, now);
  if (view.generation != GenerationId{}) {
    *proto.mutable_generation() = ToProto(view.generation);
  }
  proto.set_size(view.size);
  proto.set_np(view.np);
  proto.set_min_np(view.min_np);
  proto.set_max_np(view.max_np);
  if (view.newest != Held{}) {
    *proto.mutable_newest() = ToProto(view.newest);
  }
  for (const HostView& host : view.hosts) {
    *proto.add_hosts() = HostToProto(host);
  }
  for (const WorkerView& worker : view.workers) {
    v1::WorkerStatus* added = proto.add_workers();
    added->set_rank(worker.rank);
    added->set_host(Utf8(worker.host));
    *added->mutable_report() = ToProto(worker.report);
  }
  for (const ResetView& reset : view.resets) {
    *proto.add_resets() = ResetToProto(reset);
  }
  proto.set_resets_total(view.resets_total);
  return proto;
}

StatusOr<JobView> FromProto(const v1::JobStatus& proto, Instant now) {
  JobView view;
  view.job_id = proto.job_id();
  ASSIGN_OR_RETURN(view.state, EnumFrom<JobState>(proto.state(), v1::JobState_IsValid, "job.state",
                                                  Unspecified::kRefused, kEnumOffset));
  ASSIGN_OR_RETURN(view.wait, WaitFromProto(proto.wait(), now));
  view.wait_text = proto.wait().text();
  view.generation = FromProto(proto.generation());
  view.size = proto.size();
  view.np = proto.np();
  view.min_np = proto.min_np();
  view.max_np = proto.max_np();
  ASSIGN_OR_RETURN(view.newest, FromProto(proto.newest()));
  RETURN_IF_ERROR(CheckRange("job.hosts count", proto.hosts_size(), 0, kHostsMax));
  for (const v1::HostStatus& host : proto.hosts()) {
    ASSIGN_OR_RETURN(HostView converted, HostFromProto(host));
    view.hosts.push_back(std::move(converted));
  }
  RETURN_IF_ERROR(CheckRange("job.workers count", proto.workers_size(), 0, kWorkersShownMax));
  for (const v1::WorkerStatus& worker : proto.workers()) {
    ASSIGN_OR_RETURN(WorkerView converted, WorkerFromProto(worker));
    view.workers.push_back(std::move(converted));
  }
  RETURN_IF_ERROR(CheckRange("job.resets count", proto.resets_size(), 0, kResetsShownMax));
  for (const v1::ResetStatus& reset : proto.resets()) {
    ASSIGN_OR_RETURN(ResetView converted, ResetFromProto(reset));
    view.resets.push_back(std::move(converted));
  }
  view.resets_total = proto.resets_total();
  return view;
}

}  // namespace elastic::internal
