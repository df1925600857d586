#pragma once

#include "elastic/v1/jobs.pb.h"
#include "elastic/v1/rendezvous.pb.h"
#include "elastic/v1/status.pb.h"
#include "elastic/v1/types.pb.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/report.h"
#include "rendezvous/core/job.h"
#include "rendezvous/core/membership.h"

namespace elastic::internal {

// The only translation between the structs that the pure cores speak and protobuf. ToProto never
// fails. FromProto checks what the network sent: INVALID_ARGUMENT names the field for enum values
// that we do not know, numbers out of range and missing messages; nothing that it lets pass can
// reach a CHECK. An absent message stands for the default struct and the other way round.
namespace v1 = ::elastic::v1;

// The version of proto/elastic/v1/rendezvous.proto that this build speaks.
inline constexpr uint32_t kProtocolVersion = 1;

// ---- types.proto
v1::GenerationId ToProto(const GenerationId& id);
GenerationId FromProto(const v1::GenerationId& proto);
v1::WorkerIncarnation ToProto(WorkerIncarnation id);
WorkerIncarnation FromProto(const v1::WorkerIncarnation& proto);
v1::Held ToProto(const Held& held);
StatusOr<Held> FromProto(const v1::Held& proto);
v1::Endpoint ToProto(const Endpoint& endpoint);
StatusOr<Endpoint> FromProto(const v1::Endpoint& proto);
v1::CommitWord ToProto(const CommitWord& word);
StatusOr<CommitWord> FromProto(const v1::CommitWord& proto);
v1::Roster ToProto(const Roster& roster);
StatusOr<Roster> FromProto(const v1::Roster& proto);
v1::Mark ToProto(const Mark& mark);
Mark FromProto(const v1::Mark& proto);
v1::FinishRecord ToProto(const FinishRecord& record);
StatusOr<FinishRecord> FromProto(const v1::FinishRecord& proto);
v1::WorkerReport ToProto(const WorkerReport& worker);
StatusOr<WorkerReport> FromProto(const v1::WorkerReport& proto);

v1::StoreKey ToProto(const StoreKey& key);
StatusOr<StoreKey> FromProto(const v1::StoreKey& proto);
v1::StoreEntry ToProto(const StorePut& put);
StatusOr<StorePut> FromProto(const v1::StoreEntry& proto);
v1::StoreAnswer ToProto(const StoreAnswer& answer);
StatusOr<StoreAnswer> FromProto(const v1::StoreAnswer& proto);

// ---- rendezvous.proto
v1::Memory ToProto(const Memory& memory);
StatusOr<Memory> FromProto(const v1::Memory& proto);
// Entries of one of the lists of puts, answers and wanted keys: of a generation and its successor.
inline constexpr int kStoreListMax = 2 * static_cast<int>(kStoreKeysMax);
v1::AgentReport ToProto(const AgentReport& report);
StatusOr<AgentReport> FromProto(const v1::AgentReport& proto);

// The rosters that the receiver of a stream has: those of the directive before.
struct KnownRosters {
  std::optional<Roster> installed;
  std::optional<Roster> prepared;
  const Roster* Find(const GenerationId& id) const;
};
// Leaves out the rosters that are in `known`, or puts them back.
v1::Directive ToProto(const Directive& directive, const KnownRosters& known);
StatusOr<Directive> FromProto(const v1::Directive& proto, const KnownRosters& known);

// ---- jobs.proto. Whether a job can be run at all is CheckJob's business.
v1::Job ToProto(const JobSpec& job);
StatusOr<JobSpec> FromProto(const v1::Job& proto);
v1::NoteSeverity ToProto(Severity severity);
StatusOr<Severity> FromProto(v1::NoteSeverity severity);
v1::StopRequest ToProto(const StopRequested& stop, const std::string& job_id);
StatusOr<StopRequested> FromProto(const v1::StopRequest& proto);

// ---- status.proto. `now` turns instants into the time that is left, and back.
v1::JobStatus ToProto(const JobView& view, Instant now);
StatusOr<JobView> FromProto(const v1::JobStatus& proto, Instant now);

}  // namespace elastic::internal
