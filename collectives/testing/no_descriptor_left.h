#pragma once

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "collectives/transport/socket.h"

// Only there when the program was built with the undefined behaviour sanitizer.
extern "C" [[gnu::weak]] void __ubsan_handle_dynamic_type_cache_miss();

namespace elastic::internal {

// While it lives, this process gets no further file descriptor.
class NoDescriptorLeft {
 public:
  // That sanitizer needs a pipe to look at an object of a type that it has not seen yet, and takes
  // the object for broken when it gets none.
  static bool Possible() {
    if (&__ubsan_handle_dynamic_type_cache_miss != nullptr) {
      WARN("not run: the sanitizer of this build needs file descriptors of its own");
      return false;
    }
    return true;
  }

  NoDescriptorLeft() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(NewEventFd().get());  // the lowest free one
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptorLeft() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

}  // namespace elastic::internal
