# elastic_grpc: gRPC, protobuf and Abseil linked statically, so that our programs need nothing but
# libc and libm where they run. Debian's CMake package of gRPC has shared targets only, so the
# archives are named here. Never link it into libelastic: Debian's Abseil archives are not position
# independent, and Abseil must not meet the copies inside a user's framework.
find_package(Threads REQUIRED)

add_library(elastic_grpc INTERFACE)
set(ELASTIC_GRPC_ARCHIVES "")
foreach(name grpc++_reflection grpc++ grpc gpr address_sorting upb re2 protobuf ssl crypto cares z)
  find_library(ELASTIC_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
  list(APPEND ELASTIC_GRPC_ARCHIVES "${ELASTIC_ARCHIVE_${name}}")
endforeach()
get_filename_component(ELASTIC_ARCHIVE_FOLDER "${ELASTIC_ARCHIVE_grpc}" DIRECTORY)
file(GLOB ELASTIC_ABSL_ARCHIVES "${ELASTIC_ARCHIVE_FOLDER}/libabsl_*.a")
if(NOT ELASTIC_ABSL_ARCHIVES)
  message(FATAL_ERROR "no libabsl_*.a in ${ELASTIC_ARCHIVE_FOLDER}: apt-get install libabsl-dev")
endif()
# The archives need each other in circles, hence the group.
target_link_libraries(elastic_grpc INTERFACE
  -Wl,--start-group ${ELASTIC_GRPC_ARCHIVES} ${ELASTIC_ABSL_ARCHIVES} -Wl,--end-group
  Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(elastic_grpc INTERFACE
  -no-pie -static-libstdc++ -static-libgcc -Wl,--gc-sections)

find_program(ELASTIC_PROTOC protoc REQUIRED)
find_program(ELASTIC_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

# elastic_add_proto_library(NAME ROOT folder FILES files...): messages and gRPC services of .proto
# files, which are named relative to ROOT, as their imports are. Generated code is compiled without
# warnings: it is not ours.
function(elastic_add_proto_library name)
  cmake_parse_arguments(ARG "" "ROOT" "FILES" ${ARGN})
  set(generated "${CMAKE_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${generated}")
  set(sources "")
  foreach(file ${ARG_FILES})
    string(REGEX REPLACE "\\.proto$" "" stem "${file}")
    set(outputs "${generated}/${stem}.pb.cc" "${generated}/${stem}.pb.h"
                "${generated}/${stem}.grpc.pb.cc" "${generated}/${stem}.grpc.pb.h")
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND "${ELASTIC_PROTOC}" "--proto_path=${ARG_ROOT}" "--cpp_out=${generated}"
              "--grpc_out=${generated}" "--plugin=protoc-gen-grpc=${ELASTIC_GRPC_PLUGIN}" "${file}"
      DEPENDS "${ARG_ROOT}/${file}"
      COMMENT "protoc ${file}"
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC "${generated}")
  target_compile_options(${name} PRIVATE -w)
  target_link_libraries(${name} PUBLIC elastic_grpc)
endfunction()
