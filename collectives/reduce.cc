#include "collectives/reduce.h"

#include <cstdint>
#include <type_traits>

namespace elastic::internal {

namespace {

// Operators are written so that the compiler vectorises them: no branch, no call, and for signed
// integers arithmetic in the unsigned type, where wrapping is defined.
template <class T>
struct Sum {
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
template <class T>
struct Product {
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // In 64 bits, because smaller types would be promoted to int, whose overflow is undefined.
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
template <class T>
struct Min {
  static T Apply(T a, T b) { return ((b < a) | (b != b)) ? b : a; }
};
template <class T>
struct Max {
  static T Apply(T a, T b) { return ((a < b) | (b != b)) ? b : a; }
};

template <class T, template <class> class Op>
void Reduce(const void* received, const void* own, void* out, size_t count) {
  const T* a = static_cast<const T*>(received);
  const T* b = static_cast<const T*>(own);
  T* c = static_cast<T*>(out);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) {
    c[i] = Op<T>::Apply(a[i], b[i]);
  }
}

template <class T>
void Divide(void* data, size_t count, int divisor) {
  T* at = static_cast<T*>(data);
  const T by = static_cast<T>(divisor);
  for (size_t i = 0; i < count; ++i) {
    at[i] = at[i] / by;
  }
}

template <class T>
ReduceKernel KernelFor(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage: return &Reduce<T, Sum>;
    case ReduceOp::kMin: return &Reduce<T, Min>;
    case ReduceOp::kMax: return &Reduce<T, Max>;
    case ReduceOp::kProduct: return &Reduce<T, Product>;
  }
  return nullptr;
}

}  // namespace

ReduceKernel ReduceKernelOf(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat32: return KernelFor<float>(op);
    case DataType::kFloat64: return KernelFor<double>(op);
    case DataType::kInt64: return KernelFor<int64_t>(op);
    case DataType::kInt32: return KernelFor<int32_t>(op);
    case DataType::kUint8: return op == ReduceOp::kAverage ? nullptr : KernelFor<uint8_t>(op);
  }
  return nullptr;
}

FinishKernel FinishKernelOf(DataType type, ReduceOp op) {
  if (op != ReduceOp::kAverage) {
    return nullptr;
  }
  switch (type) {
    case DataType::kFloat32: return &Divide<float>;
    case DataType::kFloat64: return &Divide<double>;
    case DataType::kInt64: return &Divide<int64_t>;
    case DataType::kInt32: return &Divide<int32_t>;
    case DataType::kUint8: return nullptr;
  }
  return nullptr;
}

}  // namespace elastic::internal
