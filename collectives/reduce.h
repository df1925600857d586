#pragma once

#include <cstddef>

#include "collectives/types.h"

namespace elastic::internal {

// out[i] = received[i] op own[i] for `count` elements. `out` may be `own` or `received`, but must
// not overlap them otherwise.
using ReduceKernel = void (*)(const void* received, const void* own, void* out, size_t count);
// data[i] /= divisor.
using FinishKernel = void (*)(void* data, size_t count, int divisor);

// Sums and products of integers wrap around; a NaN on any rank makes a minimum or maximum NaN, so
// that one rank's trouble is seen by all. Average sums, the finish kernel then divides (integers
// towards zero). Null for values that are no type or no operation, and for the average of u8: two
// pixels are enough to make its sum wrap.
ReduceKernel ReduceKernelOf(DataType type, ReduceOp op);
// Null if the operation needs no division at its end.
FinishKernel FinishKernelOf(DataType type, ReduceOp op);

}  // namespace elastic::internal
