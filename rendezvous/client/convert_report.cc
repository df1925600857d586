#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

constexpr int kAccusationsMax = 4 * kMembersMax;
constexpr int kRostersKeptMax = 4096;  // of a worker that hangs while generations come and go
constexpr int kWorkersPerReportMax = 1 << 16;  // dead ones stay until they may be forgotten

Status FillLifetime(const v1::WorkerReport& proto, WorkerReport& worker) {
  ASSIGN_OR_RETURN(worker.life,
                   EnumFrom<WorkerLife>(proto.life(), v1::WorkerLife_IsValid, "worker.life"));
  // A page that was just made names no phase yet.
  ASSIGN_OR_RETURN(worker.phase, EnumFrom<Phase>(proto.phase(), v1::Phase_IsValid, "worker.phase",
                                                 Unspecified::kAllowed));
  ASSIGN_OR_RETURN(worker.cause, EnumFrom<DeathCause>(proto.cause(), v1::DeathCause_IsValid,
                                                      "worker.cause", Unspecified::kAllowed));
  ASSIGN_OR_RETURN(worker.beat_age, FromProto(proto.beat_age(), "worker.beat_age"));
  if (proto.has_exit()) {
    worker.exit = ExitStatus{proto.exit().signalled(), proto.exit().code()};
  }
  return OkStatus();
}

}  // namespace

v1::WorkerReport ToProto(const WorkerReport& worker) {
  v1::WorkerReport proto;
  *proto.mutable_incarnation() = ToProto(worker.incarnation);
  proto.set_slot(worker.slot);
  proto.set_pid(worker.pid);
  proto.set_life(EnumTo<v1::WorkerLife>(worker.life));
  *proto.mutable_word() = ToProto(worker.word);
  if (worker.generation != GenerationId{}) {
    *proto.mutable_generation() = ToProto(worker.generation);
  }
  if (worker.held != Held{}) {
    *proto.mutable_held() = ToProto(worker.held);
  }
  proto.set_entered(worker.entered);
  proto.set_joined(worker.joined);
  if (worker.finished.has_value()) {
    *proto.mutable_finished()->mutable_state() = ToProto(*worker.finished);
  }
  if (worker.data != Endpoint{}) {
    *proto.mutable_data() = ToProto(worker.data);
  }
  proto.set_phase(EnumTo<v1::Phase>(worker.phase));
  *proto.mutable_beat_age() = ToProto(worker.beat_age);
  for (const Accusation& accusation : worker.accusations) {
    v1::Accusation* added = proto.add_accusations();
    *added->mutable_generation() = ToProto(accusation.generation);
    *added->mutable_accused() = ToProto(accusation.accused);
  }
  proto.set_cause(EnumTo<v1::DeathCause>(worker.cause));
  if (worker.exit.has_value()) {
    proto.mutable_exit()->set_signalled(worker.exit->signalled);
    proto.mutable_exit()->set_code(worker.exit->code);
  }
  proto.set_released(worker.released);
  if (worker.program_error.has_value()) {
    proto.set_program_error(Utf8(*worker.program_error));
  }
  return proto;
}

StatusOr<WorkerReport> FromProto(const v1::WorkerReport& proto) {
  WorkerReport worker;
  worker.incarnation = FromProto(proto.incarnation());
  RETURN_IF_ERROR(CheckRange("worker.slot", proto.slot(), 0, kSlotsPerHostMax - 1));
  worker.slot = proto.slot();
  worker.pid = proto.pid();
  RETURN_IF_ERROR(FillLifetime(proto, worker));
  ASSIGN_OR_RETURN(worker.word, FromProto(proto.word()));
  worker.generation = FromProto(proto.generation());
  ASSIGN_OR_RETURN(worker.held, FromProto(proto.held()));
  worker.entered = proto.entered();
  worker.joined = proto.joined();
  if (proto.has_finished()) {
    ASSIGN_OR_RETURN(worker.finished, FromProto(proto.finished().state()));
  }
  ASSIGN_OR_RETURN(worker.data, FromProto(proto.data()));
  RETURN_IF_ERROR(
      CheckRange("worker.accusations count", proto.accusations_size(), 0, kAccusationsMax));
  for (const v1::Accusation& accusation : proto.accusations()) {
    worker.accusations.push_back(
        {FromProto(accusation.generation()), FromProto(accusation.accused())});
  }
  worker.released = proto.released();
  if (proto.has_program_error()) {
    worker.program_error = proto.program_error();
  }
  return worker;
}

v1::Memory ToProto(const Memory& memory) {
  v1::Memory proto;
  for (const Roster& roster : memory.rosters) {
    *proto.add_rosters() = ToProto(roster);
  }
  if (memory.finished.has_value()) {
    *proto.mutable_finished() = ToProto(*memory.finished);
  }
  proto.set_stop(EnumTo<v1::StopMode>(memory.stop));
  proto.set_stop_reason(Utf8(memory.stop_reason));
  proto.set_stop_exit_code(memory.stop_exit_code);
  proto.set_told_all(memory.told_all);
  return proto;
}

StatusOr<Memory> FromProto(const v1::Memory& proto) {
  Memory memory;
  ASSIGN_OR_RETURN(memory.rosters,
                   (VectorFrom<Roster>(proto.rosters(), "memory.rosters", kRostersKeptMax)));
  if (proto.has_finished()) {
    ASSIGN_OR_RETURN(memory.finished, FromProto(proto.finished()));
  }
  ASSIGN_OR_RETURN(memory.stop,
                   EnumFrom<StopMode>(proto.stop(), v1::StopMode_IsValid, "memory.stop"));
  memory.stop_reason = proto.stop_reason();
  memory.stop_exit_code = proto.stop_exit_code();
  memory.told_all = proto.told_all();
  return memory;
}

v1::AgentReport ToProto(const AgentReport& report) {
  v1::AgentReport proto;
  proto.set_host(Utf8(report.host));
  proto.set_agent(report.agent.value);
  proto.set_sequence(report.sequence);
  proto.set_acked_directive(report.acked_directive);
  if (report.installed != GenerationId{}) {
    *proto.mutable_installed() = ToProto(report.installed);
  }
  if (report.prepared != GenerationId{}) {
    *proto.mutable_prepared() = ToProto(report.prepared);
  }
  proto.set_closed(report.closed.value);
  for (const Mark& mark : report.marks) {
    *proto.add_marks() = ToProto(mark);
  }
  if (report.copies != Endpoint{}) {
    *proto.mutable_copies() = ToProto(report.copies);
  }
  for (const WorkerReport& worker : report.workers) {
    *proto.add_workers() = ToProto(worker);
  }
  if (report.spawn_error.has_value()) {
    proto.set_spawn_error(Utf8(*report.spawn_error));
  }
  for (const StorePut& put : report.puts) {
    *proto.add_puts() = ToProto(put);
  }
  for (const StoreKey& key : report.wanted) {
    *proto.add_wanted() = ToProto(key);
  }
  proto.set_server_incarnation(report.server.value);
  if (report.memory.has_value()) {
    *proto.mutable_memory() = ToProto(*report.memory);
  }
  return proto;
}

StatusOr<AgentReport> FromProto(const v1::AgentReport& proto) {
  AgentReport report;
  RETURN_IF_ERROR(CheckHostName("report.host", proto.host()));
  report.host = proto.host();
  report.agent = AgentIncarnation{proto.agent()};
  report.sequence = proto.sequence();
  report.acked_directive = proto.acked_directive();
  report.installed = FromProto(proto.installed());
  report.prepared = FromProto(proto.prepared());
  report.closed = GenerationNumber{proto.closed()};
  RETURN_IF_ERROR(CheckRange("report.marks count", proto.marks_size(), 0, kMarksMax));
  for (const v1::Mark& mark : proto.marks()) {
    report.marks.push_back(FromProto(mark));
  }
  ASSIGN_OR_RETURN(report.copies, FromProto(proto.copies()));
  ASSIGN_OR_RETURN(report.workers, (VectorFrom<WorkerReport>(proto.workers(), "report.workers",
                                                             kWorkersPerReportMax)));
  if (proto.has_spawn_error()) {
    report.spawn_error = proto.spawn_error();
  }
  report.server = ServerIncarnation{proto.server_incarnation()};
  if (proto.has_memory()) {
    ASSIGN_OR_RETURN(report.memory, FromProto(proto.memory()));
  }
  ASSIGN_OR_RETURN(report.puts, (VectorFrom<StorePut>(proto.puts(), "report.puts", kStoreListMax)));
  ASSIGN_OR_RETURN(report.wanted,
                   (VectorFrom<StoreKey>(proto.wanted(), "report.wanted", kStoreListMax)));
  return report;
}

}  // namespace elastic::internal
