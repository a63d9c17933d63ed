# The library is opened at run time; only the headers of a 3.x are needed to build. scripts/lib/setup.sh puts both into
# build/onednn, from PyPI; WEFT_ONEDNN names another folder with include/ and lib/.
set(WEFT_ONEDNN "${PROJECT_SOURCE_DIR}/build/onednn" CACHE PATH "folder with include/oneapi/dnnl and lib/libdnnl.so.3")
find_path(WEFT_ONEDNN_HEADERS oneapi/dnnl/dnnl_version.h HINTS "${WEFT_ONEDNN}/include")
set(version "")
if(WEFT_ONEDNN_HEADERS)
  file(STRINGS "${WEFT_ONEDNN_HEADERS}/oneapi/dnnl/dnnl_version.h" version REGEX "DNNL_VERSION_MAJOR 3")
endif()
if(NOT version)
  set(WEFT_BACKEND_SKIP "no headers of oneDNN 3 in ${WEFT_ONEDNN}/include; scripts/test installs them")
elseif(WEFT_SANITIZE STREQUAL "thread")
  set(WEFT_BACKEND_SKIP "ThreadSanitizer does not know the locks of OpenMP's runtime")
else()
  list(APPEND WEFT_BACKEND_OPTIONS "-isystem${WEFT_ONEDNN_HEADERS}"
       "-DWEFT_ONEDNN_BESIDE=\"${WEFT_ONEDNN}/lib/libdnnl.so.3\"")
endif()
