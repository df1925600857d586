#include "collectives/types.h"

#include "collectives/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

Status TooManyCommunicators() {
  return ResourceExhaustedError(StrCat("one generation has at most ", kCreatedCommunicatorsMax,
                                       " communicators beside the world's: create them once and "
                                       "use them for many operations"));
}

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
