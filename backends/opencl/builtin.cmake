# The library is opened at run time; only the headers are needed to build.
find_path(WEFT_OPENCL_HEADERS CL/cl.h)
if(NOT WEFT_OPENCL_HEADERS)
  set(WEFT_BACKEND_SKIP "CL/cl.h not found; install opencl-c-headers")
endif()
