# elastic_install_package(): how a program outside this project finds the installed libelastic:
# find_package(ElasticRun) with the target ElasticRun::elastic, and pkg-config elasticrun. Both
# name their files relative to their own place, so that an installed copy may be moved.
include(CMakePackageConfigHelpers)

function(elastic_install_package)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/ElasticRun")
  install(EXPORT ElasticRunTargets NAMESPACE ElasticRun:: DESTINATION "${folder}")
  # Before 1.0 each minor version may change the interface.
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/ElasticRunConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES ElasticRunConfig.cmake
    "${CMAKE_CURRENT_BINARY_DIR}/ElasticRunConfigVersion.cmake" DESTINATION "${folder}")

  set(pc_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH ELASTIC_PREFIX_FROM_PC "/prefix/${pc_folder}" "/prefix")
  configure_file(elasticrun.pc.in elasticrun.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/elasticrun.pc" DESTINATION "${pc_folder}")
endfunction()
