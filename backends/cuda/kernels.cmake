# The kernels of this backend, for each of the backends that are made of its files: the folder is the list.

# weft_gpu_kernels(target FUNCTION FOLDER...): each FOLDER/<op>.<variant>.cu defines `std::span<const backend::KernelRecord>
# <op>_<variant>()` in namespace weft::cuda; adds to the target the file that joins them into FUNCTION of kernels.hpp. Without a
# folder it gives none.
function(weft_gpu_kernels target function)
  set(declare "")
  set(list "")
  foreach(folder IN LISTS ARGN)
    file(GLOB kernels CONFIGURE_DEPENDS "${folder}/*.cu")
    foreach(file IN LISTS kernels)
      get_filename_component(records "${file}" NAME)
      string(REGEX REPLACE "\\.cu$" "" records "${records}")
      string(REPLACE "." "_" records "${records}")
      string(APPEND declare "std::span<const backend::KernelRecord> ${records}();\n")
      string(APPEND list "${records}(), ")
    endforeach()
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${target}_${function}.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
"// Made from the folder of kernels.
#include \"${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernels.hpp\"

namespace weft::cuda {
${declare}std::span<const backend::KernelRecord> ${function}() {
  static const auto all = joined({${list}});
  return all;
}
}  // namespace weft::cuda
")
  target_sources(${target} PRIVATE "${generated}")
endfunction()
