#pragma once

#include <cstdint>
#include <string>

namespace elastic::internal {

// From the kernel (getrandom): nobody outside the job can guess it.
uint64_t RandomNumber();
std::string RandomHex();  // 16 digits

}  // namespace elastic::internal
