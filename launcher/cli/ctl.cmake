# elastic-ctl: what it prints is a library without gRPC, so that its tests build fast.
find_package(CLI11 CONFIG REQUIRED)

add_library(elastic_ctl_lib STATIC ctl_json.cc ctl_json_writer.cc ctl_names.cc ctl_table.cc)
target_link_libraries(elastic_ctl_lib PUBLIC elastic_base)
elastic_add_test(ctl_test SOURCES ctl_test.cc LIBRARIES elastic_ctl_lib)

add_executable(elastic-ctl ctl_main.cc)
target_compile_definitions(elastic-ctl PRIVATE ELASTIC_VERSION="${PROJECT_VERSION}")
target_link_libraries(elastic-ctl PRIVATE elastic_ctl_lib elastic_client CLI11::CLI11)
install(TARGETS elastic-ctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
