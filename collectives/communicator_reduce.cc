// Operations that reduce.
#include <cstring>

#include "collectives/communicator_impl.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

struct Reduction {
  size_t element_bytes = 0;
  ReduceKernel kernel = nullptr;
  FinishKernel finish = nullptr;
};

// `parts` parts of `count` elements each.
StatusOr<Reduction> Check(const char* name, size_t count, int parts, DataType type, ReduceOp op) {
  const ReduceKernel kernel = ReduceKernelOf(type, op);
  if (kernel == nullptr && type == DataType::kUint8 && op == ReduceOp::kAverage) {
    return InvalidArgumentError(StrCat(
        name, " makes no average of u8, whose sums wrap at 256: convert to i32 or f32 first"));
  }
  if (kernel == nullptr) {
    return InvalidArgumentError(StrCat(name, " knows no data type ", static_cast<int>(type),
                                       " with reduction ", static_cast<int>(op)));
  }
  const size_t element_bytes = SizeOf(type);
  if (count > kStateBytesMax / element_bytes / static_cast<size_t>(parts)) {
    return InvalidArgumentError(StrCat(name, " of ", parts, " x ", count,
                                       " elements is over the limit of ", kStateBytesMax,
                                       " bytes"));
  }
  return Reduction{element_bytes, kernel, FinishKernelOf(type, op)};
}

}  // namespace

void Communicator::Impl::ReduceInRankOrder(const Exchange::Work& work, size_t count) {
  const std::byte* contributions = exchange.scratch();
  const size_t bytes = count * work.element_bytes;
  std::memcpy(work.output, contributions, bytes);
  for (int rank = 1; rank < mesh->size(); ++rank) {
    const std::byte* next = contributions + static_cast<size_t>(rank) * bytes;
    work.kernel(work.output, next, work.output, count);
  }
  if (work.finish != nullptr) {
    work.finish(work.output, count, mesh->size());
  }
}

std::byte* Communicator::Impl::Passing(size_t bytes) {
  if (passing_bytes < bytes) {
    passing = std::make_unique_for_overwrite<std::byte[]>(bytes);
    passing_bytes = bytes;
  }
  return passing.get();
}

Event Communicator::AllReduce(const void* in, void* out, size_t count, DataType type, ReduceOp op,
                              Stream, std::optional<Instant> deadline) {
  const StatusOr<Reduction> reduction = Check("allreduce", count, 1, type, op);
  if (!reduction.ok()) {
    return Event(reduction.status());
  }
  const size_t bytes = count * reduction->element_bytes;
  if (MissingMemory(in, bytes) || MissingMemory(out, bytes) ||
      (in != out && PartlyOverlap(in, bytes, out, bytes))) {
    return Event(InvalidArgumentError(
        "allreduce needs `in` and `out` to be memory that is the same or does not overlap"));
  }
  if (Status ready = impl_->exchange.Usable(); !ready.ok()) {
    return Event(std::move(ready));
  }
  if (impl_->alone()) {
    if (bytes > 0) {
      std::memmove(out, in, bytes);
    }
    return Event(impl_->EndAlone());
  }
  const Exchange::Work work{.header = {.kind = OperationKind::kAllReduce,
                                       .type = static_cast<uint8_t>(type),
                                       .op = static_cast<uint8_t>(op),
                                       .bytes = bytes},
                            .input = static_cast<const std::byte*>(in),
                            .output = static_cast<std::byte*>(out),
                            .element_bytes = reduction->element_bytes,
                            .kernel = reduction->kernel,
                            .finish = reduction->finish};
  if (!impl_->Direct(bytes)) {
    PlanRingAllReduce(impl_->at(), {.count = count, .element_bytes = reduction->element_bytes},
                      impl_->exchange.plan());
    return Event(impl_->RunWorld(work, deadline));
  }
  PlanDirectExchange(impl_->at(), bytes, impl_->exchange.plan());
  if (bytes > 0) {
    std::memcpy(impl_->exchange.scratch() + static_cast<size_t>(rank()) * bytes, in, bytes);
  }
  Status status = impl_->RunWorld(work, deadline);
  if (status.ok() && bytes > 0) {
    impl_->ReduceInRankOrder(work, count);
  }
  return Event(std::move(status));
}

Event Communicator::ReduceScatter(const void* in, void* out, size_t count, DataType type,
                                  ReduceOp op, Stream, std::optional<Instant> deadline) {
  const StatusOr<Reduction> reduction = Check("reduce-scatter", count, size(), type, op);
  if (!reduction.ok()) {
    return Event(reduction.status());
  }
  const size_t bytes = count * reduction->element_bytes;
  const size_t all_bytes = bytes * static_cast<size_t>(size());
  const auto* own = static_cast<const std::byte*>(in) + static_cast<size_t>(rank()) * bytes;
  if (MissingMemory(in, bytes) || MissingMemory(out, bytes) ||
      (out != own && PartlyOverlap(in, all_bytes, out, bytes))) {
    return Event(InvalidArgumentError(
        "reduce-scatter needs `out` to be this rank's part of `in` or not to overlap it"));
  }
  if (Status ready = impl_->exchange.Usable(); !ready.ok()) {
    return Event(std::move(ready));
  }
  const bool direct = impl_->Direct(bytes);
  if (impl_->alone() && bytes > 0) {
    std::memmove(out, in, bytes);
  }
  if (impl_->alone()) {
    return Event(impl_->EndAlone());
  }
  Exchange::Work work{.header = {.kind = OperationKind::kReduceScatter,
                                 .type = static_cast<uint8_t>(type),
                                 .op = static_cast<uint8_t>(op),
                                 .bytes = all_bytes},
                      .input = static_cast<const std::byte*>(in),
                      .output = static_cast<std::byte*>(out),
                      .element_bytes = reduction->element_bytes,
                      .kernel = reduction->kernel,
                      .finish = reduction->finish};
  if (direct) {
    PlanDirectReduceScatter(impl_->at(), bytes, impl_->exchange.plan());
    if (bytes > 0) {
      std::memcpy(impl_->exchange.scratch() + static_cast<size_t>(rank()) * bytes, own, bytes);
    }
  } else {
    PlanRingReduceScatter(impl_->at(), {.count = count, .element_bytes = reduction->element_bytes},
                          impl_->exchange.plan());
    work.output = impl_->Passing(all_bytes);
  }
  Status status = impl_->RunWorld(work, deadline);
  if (status.ok() && bytes > 0 && direct) {
    impl_->ReduceInRankOrder(work, count);
  } else if (status.ok() && bytes > 0) {
    std::memcpy(out, work.output + static_cast<size_t>(rank()) * bytes, bytes);
  }
  return Event(std::move(status));
}

}  // namespace elastic::internal
