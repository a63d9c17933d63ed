# Built in: kernels of this folder, compiled once for each instruction set that Highway tells apart, chosen when the program runs.
find_path(WEFT_HIGHWAY_HEADERS hwy/highway.h)
find_library(WEFT_HIGHWAY_LIBRARY hwy)
if(WEFT_HIGHWAY_HEADERS AND WEFT_HIGHWAY_LIBRARY)
  list(APPEND WEFT_BACKEND_LIBRARIES hwy)
  list(APPEND WEFT_BACKEND_OPTIONS $<$<CONFIG:Release>:-O3>)
else()
  set(WEFT_BACKEND_SKIP "hwy/highway.h not found; install libhwy-dev")
endif()
