# Language level, warnings and sanitizers of every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
# Everything may become part of libelastic.so.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include(GNUInstallDirs)

add_compile_options(-Wall -Wextra -Wshadow -Wno-missing-field-initializers -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  # g++ 12 reports it for operator+ of a literal and a string at -O3 (gcc.gnu.org/PR105651).
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # The mutexes' annotations (rendezvous/base/mutex.h); g++ knows none.
  add_compile_options(-Wthread-safety)
  # A sanitizer's checks keep loops from being vectorised, which is no mistake of ours.
  add_compile_options(-Wno-pass-failed)
endif()
if(ELASTIC_WERROR)
  add_compile_options(-Werror)
endif()
include_directories("${CMAKE_SOURCE_DIR}")

set(ELASTIC_SANITIZE "" CACHE STRING "sanitizers for every target, e.g. address,undefined")
if(ELASTIC_SANITIZE)
  add_compile_options(-fsanitize=${ELASTIC_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ELASTIC_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
endif()

option(ELASTIC_FUZZ "build the fuzz targets (tests/fuzz) instead of the tests; clang only" OFF)
set(ELASTIC_FUZZ_RUNS 8000 CACHE STRING "inputs that each fuzz target tries as a ctest")
