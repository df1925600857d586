# elastic_python_tests(FILE TIMEOUT [LABELS...] [SERIAL])
# Each function of FILE whose name begins with a capital letter becomes a ctest of its own name
# (tests/support/runner.py runs it). A trailing `# slow` on its def line adds the label slow.
set(ELASTIC_PYTHON /usr/bin/python3)  # where Debian's modules are, whatever PATH has first

function(elastic_python_tests file timeout)
  cmake_parse_arguments(ARG "SERIAL" "" "LABELS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" definitions REGEX "^def [A-Z]")
  if(NOT definitions)
    message(FATAL_ERROR "no tests in ${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endif()
  get_filename_component(group "${file}" NAME_WE)
  foreach(definition IN LISTS definitions)
    string(REGEX MATCH "^def ([A-Za-z0-9]+)" ignored "${definition}")
    set(test "${group}: ${CMAKE_MATCH_1}")
    add_test(NAME "${test}"
      COMMAND ${ELASTIC_PYTHON} "${CMAKE_CURRENT_SOURCE_DIR}/${file}" --build "${CMAKE_BINARY_DIR}"
              ${CMAKE_MATCH_1})
    set(labels ${ARG_LABELS})
    if(definition MATCHES "# slow")
      list(APPEND labels slow)
    endif()
    set_tests_properties("${test}" PROPERTIES TIMEOUT ${timeout} LABELS "${labels}"
      ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1" RUN_SERIAL "${ARG_SERIAL}")
  endforeach()
endfunction()
