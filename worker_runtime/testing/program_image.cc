#include "worker_runtime/testing/program_image.h"

#include <link.h>

namespace elastic::testing {

ProgramImage Image() {
  ProgramImage image;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* user) {
        auto& found = *static_cast<ProgramImage*>(user);
        found.base = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
            found.code_begin = info->dlpi_addr + segment.p_vaddr;
            found.code_end = found.code_begin + segment.p_memsz;
          }
        }
        return 1;  // the program is the first one
      },
      &image);
  return image;
}

}  // namespace elastic::testing
