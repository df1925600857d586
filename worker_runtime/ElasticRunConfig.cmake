# find_package(ElasticRun) in a user's project:
#   ElasticRun::elastic  libelastic with its headers, <elastic/elastic.h> (C++17) and
#                        <elastic/elastic_c.h> (C99); it needs nothing else
#   ElasticRun::testing  jobs inside the project's own tests, <elastic/elastic_testing.h>
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/ElasticRunTargets.cmake")
