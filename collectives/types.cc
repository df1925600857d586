#include "collectives/types.h"

namespace elastic::internal {

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32: return 4;
    case DataType::kFloat64: return 8;
    case DataType::kInt64: return 8;
    case DataType::kInt32: return 4;
    case DataType::kUint8: return 1;
  }
  return 0;
}

}  // namespace elastic::internal
