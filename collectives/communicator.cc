#include "collectives/communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "collectives/communicator_impl.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

Status Communicator::Impl::Run(Exchange::Work work, std::optional<Instant> deadline) {
  work.header.number = ++operations;
  exchange.Begin(work, own);
  return exchange.Complete(deadline);
}

Status Communicator::Impl::RunWorld(const Exchange::Work& work, std::optional<Instant> deadline) {
  Status status = Run(work, deadline);
  if (status.ok()) {
    agreed = exchange.agreed();
  }
  return status;
}

Status Communicator::Impl::EndAlone() {
  agreed = own;
  return OkStatus();
}

Communicator::Communicator(std::unique_ptr<Mesh> mesh, const Interrupt& interrupt)
    : impl_(std::make_unique<Impl>(std::move(mesh), interrupt)) {}

Communicator::~Communicator() {
  if (impl_) {
    Abort();
  }
}

// The exchange goes first, without an abort: the connections live on.
std::unique_ptr<Mesh> Communicator::Dissolve() {
  ELASTIC_CHECK(impl_->operations == 0);
  std::unique_ptr<Mesh> mesh = std::move(impl_->mesh);
  impl_.reset();
  return mesh;
}

int Communicator::rank() const { return impl_->mesh->rank(); }
int Communicator::size() const { return impl_->mesh->size(); }
const GenerationId& Communicator::generation() const { return impl_->mesh->generation(); }
void Communicator::Abort() { impl_->exchange.Abort(); }
Status Communicator::failure() const { return impl_->exchange.failure(); }
std::optional<WorkerIncarnation> Communicator::broken_peer() const {
  return impl_->exchange.broken_peer();
}

Event Communicator::Broadcast(void* data, size_t bytes, int root, Stream,
                              std::optional<Instant> deadline) {
  if (root < 0 || root >= size()) {
    return Event(InvalidArgumentError(
        StrCat("broadcast root ", root, " is no rank of ", size(), " (0 to ", size() - 1, ")")));
  }
  if (MissingMemory(data, bytes)) {
    return Event(InvalidArgumentError("broadcast needs memory for its data"));
  }
  if (Status ready = impl_->exchange.Usable(); !ready.ok() || impl_->alone()) {
    return Event(std::move(ready));
  }
  const BroadcastSize what{.root = root, .bytes = bytes};
  if (impl_->Direct(bytes)) {
    PlanFlatBroadcast(impl_->at(), what, impl_->exchange.plan());
  } else {
    PlanRingBroadcast(impl_->at(), what, impl_->exchange.plan());
  }
  return Event(impl_->Run({.header = {.kind = OperationKind::kBroadcast,
                                      .root = static_cast<uint32_t>(root),
                                      .bytes = bytes},
                           .output = static_cast<std::byte*>(data)},
                          deadline));
}

// The parts are in `parts`, the own one in its place.
Event Communicator::Impl::Gather(std::byte* out, std::optional<Instant> deadline) {
  if (alone()) {
    return Event(EndAlone());
  }
  MessageHeader header{.kind = OperationKind::kAllGather};
  header.bytes = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
  if (std::ranges::adjacent_find(parts, std::ranges::not_equal_to()) != parts.end()) {
    header.parts =
        static_cast<uint32_t>(HashBytes(parts.data(), parts.size() * sizeof(size_t))) | 1;
  }
  if (Direct(std::ranges::max(parts))) {
    PlanDirectAllGather(at(), parts, exchange.plan());
  } else {
    PlanRingAllGather(at(), parts, exchange.plan());
  }
  return Event(RunWorld({.header = header, .output = out}, deadline));
}

Event Communicator::AllGather(const void* in, void* out, size_t bytes, Stream stream,
                              std::optional<Instant> deadline) {
  const std::vector<size_t> bytes_of(static_cast<size_t>(size()), bytes);
  return AllGatherV(in, out, bytes_of, stream, deadline);
}

Event Communicator::AllGatherV(const void* in, void* out, std::span<const size_t> bytes_of, Stream,
                               std::optional<Instant> deadline) {
  if (bytes_of.size() != static_cast<size_t>(size())) {
    return Event(InvalidArgumentError(StrCat("allgather needs one number of bytes for each of ",
                                             size(), " ranks, got ", bytes_of.size())));
  }
  size_t total = 0;
  size_t offset = 0;
  for (size_t r = 0; r < bytes_of.size(); ++r) {
    offset = r == static_cast<size_t>(rank()) ? total : offset;
    if (bytes_of[r] > kStateBytesMax - total) {
      return Event(InvalidArgumentError(
          StrCat("allgather of ", bytes_of[r], " bytes from rank ", r, " and ", total,
                 " of those before it is over the limit of ", kStateBytesMax, " bytes")));
    }
    total += bytes_of[r];
  }
  const size_t own_bytes = bytes_of[static_cast<size_t>(rank())];
  if (MissingMemory(in, own_bytes) || MissingMemory(out, total)) {
    return Event(InvalidArgumentError("allgather needs memory for `in` and `out`"));
  }
  if (Status ready = impl_->exchange.Usable(); !ready.ok()) {
    return Event(std::move(ready));
  }
  auto* to = static_cast<std::byte*>(out);
  if (own_bytes > 0 && in != to + offset) {
    std::memmove(to + offset, in, own_bytes);
  }
  impl_->parts.assign(bytes_of.begin(), bytes_of.end());
  return impl_->Gather(to, deadline);
}

Event Communicator::Impl::WithoutData(OperationKind kind, std::optional<Instant> deadline) {
  if (Status ready = exchange.Usable(); !ready.ok()) {
    return Event(std::move(ready));
  }
  if (alone()) {
    return Event(EndAlone());
  }
  if (Direct(0)) {
    PlanDirectExchange(at(), 0, exchange.plan());
  } else {
    PlanDissemination(at(), exchange.plan());
  }
  return Event(RunWorld({.header = {.kind = kind}}, deadline));
}

Event Communicator::Barrier(Stream, std::optional<Instant> deadline) {
  return impl_->WithoutData(OperationKind::kBarrier, deadline);
}

Event Communicator::Agree(Stream, std::optional<Instant> deadline) {
  return impl_->WithoutData(OperationKind::kCommit, deadline);
}

Status Communicator::SayFinished(std::optional<Instant> deadline) {
  RETURN_IF_ERROR(impl_->exchange.Usable());
  if (impl_->alone()) {
    return OkStatus();
  }
  PlanFarewell(EdgePeers(impl_->at(), kFullMeshMax), impl_->exchange.plan());
  return impl_->Run({.header = {.kind = OperationKind::kFinish}}, deadline);
}

void Communicator::Contribute(const Agreement& own) { impl_->own = own; }
const Agreement& Communicator::agreed() const { return impl_->agreed; }

}  // namespace elastic::internal
