#include "rendezvous/core/generation_store.h"

#include "rendezvous/base/limits.h"

namespace elastic::internal {

StoreVerdict GenerationStore::Put(const std::string& name, const std::string& value) {
  const auto found = values_.find(name);
  if (found != values_.end()) {
    return found->second == value ? StoreVerdict::kStored : StoreVerdict::kDiffers;
  }
  const size_t bytes = name.size() + value.size();
  if (values_.size() >= kStoreKeysMax || bytes > kStoreBytesMax - bytes_) {
    return StoreVerdict::kFull;
  }
  bytes_ += bytes;
  values_.emplace(name, value);
  return StoreVerdict::kStored;
}

const std::string* GenerationStore::Find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace elastic::internal
