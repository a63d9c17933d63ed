# What may be switched. A config.cmake beside this project, or -DWEFT_CONFIG=file, may set any of these; a variable that is
# not set there keeps its default.
set(WEFT_CONFIG "${PROJECT_SOURCE_DIR}/config.cmake" CACHE FILEPATH "file that sets options")
if(EXISTS "${WEFT_CONFIG}")
  include("${WEFT_CONFIG}")
endif()
option(WEFT_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
set(WEFT_TEST_FILES "" CACHE STRING "regular expression: build only tests/<this>_test.cpp, and no conformance; empty: all")
option(WEFT_BENCH "build the benchmarks" OFF)
set(WEFT_SANITIZE "" CACHE STRING "address, thread or empty")
option(WEFT_FUZZ "build the fuzz targets; wants clang" OFF)
set(WEFT_LEAVE_OUT "" CACHE STRING "files below src/ that are not built: a regular expression")
set(WEFT_PLUGINS_FROM "" CACHE PATH "folder of out-of-tree backends that were built before; empty: they are built")
set(WEFT_PLUGINS_ANEW "" CACHE STRING "those of them that are built all the same")
set(WEFT_OPS_FROM "" CACHE PATH "build folder whose objects of src/ops are taken, where it has them; empty: all are compiled")
option(BUILD_CUDA "build the cuda backend; wants nvcc and the headers of cuBLASLt" OFF)

# One USE_<NAME> for each folder under backends/ that can be built in.
file(GLOB backend_folders RELATIVE "${PROJECT_SOURCE_DIR}/backends" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/*/builtin.cmake")
foreach(file IN LISTS backend_folders)
  get_filename_component(folder "${file}" DIRECTORY)
  string(TOUPPER "USE_${folder}" option_name)
  option(${option_name} "build the ${folder} backend in" ON)
endforeach()
