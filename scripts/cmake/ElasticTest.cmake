# elastic_add_test(NAME SOURCES files... LIBRARIES targets... [LABELS labels...] [TIMEOUT seconds]
#                  [ENVIRONMENT NAME=value...] [ONE_THREAD])
# One Catch2 program; each TEST_CASE becomes a ctest of its own name. Label `slow` is left out of
# scripts/test --fast. ONE_THREAD: no second thread ever runs, so the thread sanitizer's build has
# nothing to find and leaves the program out.
include(CTest)
if(BUILD_TESTING)
  find_package(Catch2 2 REQUIRED)
  include(Catch)
endif()

function(elastic_add_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "TIMEOUT" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT BUILD_TESTING OR (ARG_ONE_THREAD AND ELASTIC_SANITIZE STREQUAL "thread"))
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
    if(ELASTIC_SANITIZE)
      set(ARG_TIMEOUT 240)  # several times slower, and more so on a busy machine
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} Catch2::Catch2WithMain)
  # An empty property would take the next one's name for its value.
  set(properties TIMEOUT ${ARG_TIMEOUT})
  foreach(property LABELS ENVIRONMENT)
    if(ARG_${property})
      list(APPEND properties ${property} "${ARG_${property}}")
    endif()
  endforeach()
  catch_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES ${properties})
endfunction()
