# Built in: kernels of this folder, compiled once for each instruction set that Highway tells apart, chosen when the program runs.
find_path(WEFT_HIGHWAY_HEADERS hwy/highway.h)
if(WEFT_HIGHWAY_HEADERS AND USE_REFERENCE)
  list(APPEND WEFT_BACKEND_OPTIONS $<$<CONFIG:Release>:-O3>)
  # What is in kernels/ looks at a call, shares it out and calls the loops of this folder: that is a third smaller without -O3's
  # copies of functions, and its own loops become vectors all the same. The product over labels has its loops there.
  file(GLOB callers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/native/kernels/*.cpp")
  list(FILTER callers EXCLUDE REGEX "/einsum\\.pairs\\.cpp$")
  set_property(SOURCE ${callers} APPEND PROPERTY COMPILE_OPTIONS
               $<$<CONFIG:Release>:-O2> $<$<CONFIG:Release>:-fvect-cost-model=dynamic>)
  # These only look at calls, once for each: for size.
  foreach(file IN ITEMS native tile_program convolution_call)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/backends/native/${file}.cpp" APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  endforeach()
elseif(NOT USE_REFERENCE)
  set(WEFT_BACKEND_SKIP "it falls back to reference's kernels")
else()
  set(WEFT_BACKEND_SKIP "hwy/highway.h not found; install libhwy-dev")
endif()
