#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "rendezvous/base/report.h"

namespace elastic::internal {

// What the members of one generation have put for each other. A value never changes, so a put that
// comes twice or late says the same as before.
class GenerationStore {
 public:
  // kStored, kDiffers or kFull.
  StoreVerdict Put(const std::string& name, const std::string& value);
  const std::string* Find(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
};

}  // namespace elastic::internal
