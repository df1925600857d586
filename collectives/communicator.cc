#include "collectives/communicator.h"

#include <cstring>
#include <functional>

#include "collectives/exchange.h"
#include "collectives/schedule/schedule.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

struct Communicator::Impl {
  Impl(std::unique_ptr<Mesh> mesh_in, const Interrupt& interrupt)
      : mesh(std::move(mesh_in)), exchange(*mesh, interrupt) {}

  Position at() const { return {.rank = mesh->rank(), .size = mesh->size()}; }
  bool alone() const { return mesh->size() == 1; }
  // Small operations go straight to every rank if every rank is connected.
  bool Direct(size_t bytes) const {
    return bytes <= kDirectBytesMax && mesh->size() <= kFullMeshMax;
  }
  // What every operation checks before a byte is sent.
  Status Ready();
  Status Run(Exchange::Work work, std::optional<Instant> deadline);
  void ReduceInRankOrder(const Exchange::Work& work, size_t count);

  std::unique_ptr<Mesh> mesh;
  Exchange exchange;
  uint64_t operations = 0;
  std::optional<MinPair> agreement;  // begun, not awaited
  MinPair smallest;                  // what dissemination reduces into
};

namespace {

// A partial overlap would reduce numbers that are already reduced.
bool PartlyOverlap(const void* a, const void* b, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  const std::less<> before;
  return first != second && before(first, second + bytes) && before(second, first + bytes);
}

bool MissingMemory(const void* data, size_t bytes) { return data == nullptr && bytes > 0; }

}  // namespace

Status Communicator::Impl::Ready() {
  RETURN_IF_ERROR(exchange.Usable());
  if (agreement) {
    return FailedPreconditionError(
        "an agreement is begun on this communicator: await it first, or use another channel");
  }
  return OkStatus();
}

Status Communicator::Impl::Run(Exchange::Work work, std::optional<Instant> deadline) {
  work.header.number = ++operations;
  exchange.Begin(work);
  return exchange.Complete(deadline);
}

void Communicator::Impl::ReduceInRankOrder(const Exchange::Work& work, size_t count) {
  const std::byte* parts = exchange.scratch();
  const size_t bytes = count * work.element_bytes;
  std::memcpy(work.output, parts, bytes);
  for (int rank = 1; rank < mesh->size(); ++rank) {
    const std::byte* own = parts + static_cast<size_t>(rank) * bytes;
    work.kernel(work.output, own, work.output, count);
  }
  if (work.finish != nullptr) {
    work.finish(work.output, count, mesh->size());
  }
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
  ELASTIC_CHECK(!impl_->agreement);
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

Event Communicator::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                              Stream, std::optional<Instant> deadline) {
  const ReduceKernel kernel = ReduceKernelOf(type, op);
  if (kernel == nullptr) {
    return Event(
        InvalidArgumentError(StrCat("allreduce knows no data type ", static_cast<int>(type),
                                    " with reduction ", static_cast<int>(op))));
  }
  const size_t element_bytes = SizeOf(type);
  if (count > kStateBytesMax / element_bytes) {
    return Event(InvalidArgumentError(StrCat(
        "allreduce of ", count, " elements is over the limit of ", kStateBytesMax, " bytes")));
  }
  const size_t bytes = count * element_bytes;
  if (MissingMemory(in, bytes) || MissingMemory(out, bytes) || PartlyOverlap(in, out, bytes)) {
    return Event(InvalidArgumentError(
        "allreduce needs `in` and `out` to be memory that is the same or does not overlap"));
  }
  if (Status ready = impl_->Ready(); !ready.ok()) {
    return Event(std::move(ready));
  }
  Exchange::Work work{.header = {.kind = OperationKind::kAllReduce,
                                 .type = static_cast<uint8_t>(type),
                                 .op = static_cast<uint8_t>(op),
                                 .bytes = bytes},
                      .input = static_cast<const std::byte*>(in),
                      .output = static_cast<std::byte*>(out),
                      .element_bytes = element_bytes,
                      .kernel = kernel,
                      .finish = FinishKernelOf(type, op)};
  if (impl_->alone()) {
    if (bytes > 0) {
      std::memmove(out, in, bytes);
    }
    return Event(OkStatus());
  }
  if (!impl_->Direct(bytes)) {
    PlanRingAllReduce(impl_->at(), {.count = count, .element_bytes = element_bytes},
                      impl_->exchange.plan());
    return Event(impl_->Run(work, deadline));
  }
  PlanDirectExchange(impl_->at(), bytes, impl_->exchange.plan());
  if (bytes > 0) {
    std::memcpy(impl_->exchange.scratch() + static_cast<size_t>(rank()) * bytes, in, bytes);
  }
  Status status = impl_->Run(work, deadline);
  if (status.ok() && bytes > 0) {
    impl_->ReduceInRankOrder(work, count);
  }
  return Event(std::move(status));
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
  if (Status ready = impl_->Ready(); !ready.ok() || impl_->alone()) {
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

Event Communicator::AllGather(const void* in, void* out, size_t bytes, Stream,
                              std::optional<Instant> deadline) {
  if (bytes > kStateBytesMax / static_cast<size_t>(size())) {
    return Event(
        InvalidArgumentError(StrCat("allgather of ", bytes, " bytes from ", size(),
                                    " ranks is over the limit of ", kStateBytesMax, " bytes")));
  }
  if (MissingMemory(in, bytes) || MissingMemory(out, bytes)) {
    return Event(InvalidArgumentError("allgather needs memory for `in` and `out`"));
  }
  if (Status ready = impl_->Ready(); !ready.ok()) {
    return Event(std::move(ready));
  }
  auto* own = static_cast<std::byte*>(out) + static_cast<size_t>(rank()) * bytes;
  if (bytes > 0 && in != own) {
    std::memmove(own, in, bytes);
  }
  if (impl_->alone()) {
    return Event(OkStatus());
  }
  if (impl_->Direct(bytes)) {
    PlanDirectAllGather(impl_->at(), bytes, impl_->exchange.plan());
  } else {
    PlanRingAllGather(impl_->at(), bytes, impl_->exchange.plan());
  }
  return Event(impl_->Run({.header = {.kind = OperationKind::kAllGather, .bytes = bytes},
                           .output = static_cast<std::byte*>(out)},
                          deadline));
}

Event Communicator::Barrier(Stream, std::optional<Instant> deadline) {
  if (Status ready = impl_->Ready(); !ready.ok() || impl_->alone()) {
    return Event(std::move(ready));
  }
  PlanDissemination(impl_->at(), 0, impl_->exchange.plan());
  return Event(impl_->Run({.header = {.kind = OperationKind::kBarrier}}, deadline));
}

Status Communicator::BeginMinPair(MinPair value) {
  RETURN_IF_ERROR(impl_->Ready());
  impl_->agreement = value;
  impl_->smallest = value;
  if (impl_->alone()) {
    return OkStatus();
  }
  Exchange::Work work{.header = {.kind = OperationKind::kMinPair,
                                 .number = ++impl_->operations,
                                 .bytes = sizeof(MinPair)},
                      .element_bytes = sizeof(MinPair),
                      .kernel = &MinPairKernel};
  work.output = reinterpret_cast<std::byte*>(&impl_->smallest);
  work.input = work.output;
  if (impl_->Direct(sizeof(MinPair))) {
    PlanDirectExchange(impl_->at(), sizeof(MinPair), impl_->exchange.plan());
    std::memcpy(impl_->exchange.scratch() + static_cast<size_t>(rank()) * sizeof value, &value,
                sizeof value);
  } else {
    PlanDissemination(impl_->at(), sizeof(MinPair), impl_->exchange.plan());
  }
  impl_->exchange.Begin(work);
  return impl_->exchange.Usable();
}

StatusOr<Communicator::MinPair> Communicator::AwaitMinPair(std::optional<Instant> deadline) {
  RETURN_IF_ERROR(impl_->exchange.Usable());
  if (!impl_->agreement) {
    return FailedPreconditionError("no agreement is begun on this communicator");
  }
  if (!impl_->alone()) {
    RETURN_IF_ERROR(impl_->exchange.Complete(deadline));
    if (impl_->Direct(sizeof(MinPair))) {
      impl_->ReduceInRankOrder({.output = reinterpret_cast<std::byte*>(&impl_->smallest),
                                .element_bytes = sizeof(MinPair),
                                .kernel = &MinPairKernel},
                               1);
    }
  }
  impl_->agreement.reset();
  return impl_->smallest;
}

}  // namespace elastic::internal
