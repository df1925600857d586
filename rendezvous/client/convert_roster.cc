#include "rendezvous/base/limits.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

constexpr int kWorkersNamedMax = 1 << 16;

v1::RosterEntry EntryToProto(const RosterEntry& entry) {
  v1::RosterEntry proto;
  proto.set_role(EnumTo<v1::Role>(entry.role));
  *proto.mutable_incarnation() = ToProto(entry.incarnation);
  proto.set_rank(entry.rank);
  proto.set_previous_rank(entry.previous_rank);
  proto.set_host(Utf8(entry.host));
  proto.set_slot(entry.slot);
  if (entry.data != Endpoint{}) {
    *proto.mutable_data() = ToProto(entry.data);
  }
  proto.set_holds_resume(entry.holds_resume);
  return proto;
}

StatusOr<RosterEntry> EntryFromProto(const v1::RosterEntry& proto) {
  RosterEntry entry;
  ASSIGN_OR_RETURN(entry.role, EnumFrom<Role>(proto.role(), v1::Role_IsValid, "entry.role"));
  entry.incarnation = FromProto(proto.incarnation());
  RETURN_IF_ERROR(CheckRange("entry.rank", proto.rank(), -1, kMembersMax - 1));
  RETURN_IF_ERROR(CheckRange("entry.previous_rank", proto.previous_rank(), -1, kMembersMax - 1));
  RETURN_IF_ERROR(CheckHostName("entry.host", proto.host()));
  RETURN_IF_ERROR(CheckRange("entry.slot", proto.slot(), 0, kSlotsPerHostMax - 1));
  entry.rank = proto.rank();
  entry.previous_rank = proto.previous_rank();
  entry.host = proto.host();
  entry.slot = proto.slot();
  ASSIGN_OR_RETURN(entry.data, FromProto(proto.data()));
  entry.holds_resume = proto.holds_resume();
  return entry;
}

void FillReference(const std::optional<Roster>& roster, const KnownRosters& known,
                   v1::RosterReference* proto) {
  *proto->mutable_id() = ToProto(roster->id);
  if (known.Find(roster->id) == nullptr) {
    *proto->mutable_roster() = ToProto(*roster);
  }
}

StatusOr<Roster> FromReference(const v1::RosterReference& proto, const KnownRosters& known) {
  if (proto.has_roster()) {
    ASSIGN_OR_RETURN(Roster roster, FromProto(proto.roster()));
    if (roster.id != FromProto(proto.id())) {
      return InvalidArgumentError("a roster came under the name of another: " +
                                  ToString(roster.id));
    }
    return roster;
  }
  const Roster* roster = known.Find(FromProto(proto.id()));
  if (roster == nullptr) {
    return InvalidArgumentError("roster of generation " + ToString(FromProto(proto.id())) +
                                " was never sent on this stream");
  }
  return *roster;
}

void Fill(const std::vector<WorkerIncarnation>& ids,
          google::protobuf::RepeatedPtrField<v1::WorkerIncarnation>* protos) {
  for (WorkerIncarnation id : ids) {
    *protos->Add() = ToProto(id);
  }
}

StatusOr<std::vector<WorkerIncarnation>> IdsFrom(
    const google::protobuf::RepeatedPtrField<v1::WorkerIncarnation>& protos,
    std::string_view field) {
  RETURN_IF_ERROR(CheckRange(field, protos.size(), 0, kWorkersNamedMax));
  std::vector<WorkerIncarnation> ids;
  for (const v1::WorkerIncarnation& proto : protos) {
    ids.push_back(FromProto(proto));
  }
  return ids;
}

Status FillLists(const v1::Directive& proto, Directive& directive) {
  RETURN_IF_ERROR(CheckRange("directive.marks count", proto.marks_size(), 0, kMarksMax));
  for (const v1::Mark& mark : proto.marks()) {
    directive.marks.push_back(FromProto(mark));
  }
  for (int32_t slot : proto.slots()) {
    RETURN_IF_ERROR(CheckRange("directive.slots", slot, 0, kSlotsPerHostMax - 1));
    directive.slots.push_back(slot);
  }
  ASSIGN_OR_RETURN(directive.remove, IdsFrom(proto.remove(), "directive.remove count"));
  ASSIGN_OR_RETURN(directive.offer_again,
                   IdsFrom(proto.offer_again(), "directive.offer_again count"));
  ASSIGN_OR_RETURN(directive.forget, IdsFrom(proto.forget(), "directive.forget count"));
  ASSIGN_OR_RETURN(
      directive.put_answers,
      (VectorFrom<StoreAnswer>(proto.put_answers(), "directive.put_answers", kStoreListMax)));
  ASSIGN_OR_RETURN(directive.values,
                   (VectorFrom<StorePut>(proto.values(), "directive.values", kStoreListMax)));
  return OkStatus();
}

}  // namespace

v1::Roster ToProto(const Roster& roster) {
  v1::Roster proto;
  *proto.mutable_id() = ToProto(roster.id);
  proto.set_kind(EnumTo<v1::GenerationKind>(roster.kind));
  proto.set_parent(roster.parent.value);
  if (roster.resume != Held{}) {
    *proto.mutable_resume() = ToProto(roster.resume);
  }
  for (const RosterEntry& entry : roster.entries) {
    *proto.add_entries() = EntryToProto(entry);
  }
  return proto;
}

StatusOr<Roster> FromProto(const v1::Roster& proto) {
  Roster roster;
  roster.id = FromProto(proto.id());
  ASSIGN_OR_RETURN(roster.kind, EnumFrom<GenerationKind>(proto.kind(), v1::GenerationKind_IsValid,
                                                         "roster.kind"));
  roster.parent = GenerationNumber{proto.parent()};
  ASSIGN_OR_RETURN(roster.resume, FromProto(proto.resume()));
  RETURN_IF_ERROR(CheckRange("roster.entries count", proto.entries_size(), 0, kRosterEntriesMax));
  for (const v1::RosterEntry& entry : proto.entries()) {
    ASSIGN_OR_RETURN(RosterEntry converted, EntryFromProto(entry));
    roster.entries.push_back(std::move(converted));
  }
  return roster;
}

const Roster* KnownRosters::Find(const GenerationId& id) const {
  if (installed.has_value() && installed->id == id) {
    return &*installed;
  }
  return prepared.has_value() && prepared->id == id ? &*prepared : nullptr;
}

v1::Directive ToProto(const Directive& directive, const KnownRosters& known) {
  v1::Directive proto;
  proto.set_server_incarnation(directive.server.value);
  proto.set_agent(directive.agent.value);
  proto.set_sequence(directive.sequence);
  proto.set_acked_report(directive.acked_report);
  if (directive.installed.has_value()) {
    FillReference(directive.installed, known, proto.mutable_installed());
  }
  if (directive.prepared.has_value()) {
    FillReference(directive.prepared, known, proto.mutable_prepared());
  }
  proto.set_closed(directive.closed.value);
  for (const Mark& mark : directive.marks) {
    *proto.add_marks() = ToProto(mark);
  }
  for (int32_t slot : directive.slots) {
    proto.add_slots(slot);
  }
  proto.set_spawn_allowed(directive.spawn_allowed);
  Fill(directive.remove, proto.mutable_remove());
  Fill(directive.offer_again, proto.mutable_offer_again());
  Fill(directive.forget, proto.mutable_forget());
  if (directive.finished.has_value()) {
    *proto.mutable_finished() = ToProto(*directive.finished);
  }
  proto.set_stop(EnumTo<v1::StopMode>(directive.stop));
  proto.set_stop_reason(Utf8(directive.stop_reason));
  proto.set_stop_exit_code(directive.stop_exit_code);
  proto.set_relearning(directive.relearning);
  for (const StoreAnswer& answer : directive.put_answers) {
    *proto.add_put_answers() = ToProto(answer);
  }
  for (const StorePut& value : directive.values) {
    *proto.add_values() = ToProto(value);
  }
  return proto;
}

StatusOr<Directive> FromProto(const v1::Directive& proto, const KnownRosters& known) {
  Directive directive;
  directive.server = ServerIncarnation{proto.server_incarnation()};
  directive.agent = AgentIncarnation{proto.agent()};
  directive.sequence = proto.sequence();
  directive.acked_report = proto.acked_report();
  if (proto.has_installed()) {
    ASSIGN_OR_RETURN(directive.installed, FromReference(proto.installed(), known));
  }
  if (proto.has_prepared()) {
    ASSIGN_OR_RETURN(directive.prepared, FromReference(proto.prepared(), known));
  }
  directive.closed = GenerationNumber{proto.closed()};
  RETURN_IF_ERROR(FillLists(proto, directive));
  directive.spawn_allowed = proto.spawn_allowed();
  if (proto.has_finished()) {
    ASSIGN_OR_RETURN(directive.finished, FromProto(proto.finished()));
  }
  ASSIGN_OR_RETURN(directive.stop,
                   EnumFrom<StopMode>(proto.stop(), v1::StopMode_IsValid, "directive.stop"));
  directive.stop_reason = proto.stop_reason();
  directive.stop_exit_code = proto.stop_exit_code();
  directive.relearning = proto.relearning();
  return directive;
}

}  // namespace elastic::internal
