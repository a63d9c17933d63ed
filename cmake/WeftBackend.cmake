# weft_kernel_table(folder namespace file [OP...]): each folder/<op>.<variant>.cpp defines `extern const weft::backend::KernelRecord
# <op>_<variant>` in that namespace; writes `file`, which defines `std::vector<weft::backend::KernelRecord> own()` there,
# without the records of OP....
function(weft_kernel_table folder namespace generated)
  file(GLOB kernels CONFIGURE_DEPENDS "${folder}/*.cpp")
  foreach(op IN LISTS ARGN)
    list(FILTER kernels EXCLUDE REGEX "/${op}\\.[^/]*$")
  endforeach()
  set(declare "")
  set(list "")
  foreach(file IN LISTS kernels)
    get_filename_component(record "${file}" NAME)
    string(REGEX REPLACE "\\.cpp$" "" record "${record}")
    string(REPLACE "." "_" record "${record}")
    string(APPEND declare "extern const backend::KernelRecord ${record};\n")
    string(APPEND list "${record}, ")
  endforeach()
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
"// Made from the folder kernels/.
#include \"weft/backend.hpp\"

namespace ${namespace} {
${declare}std::vector<backend::KernelRecord> own() { return {${list}}; }
}  // namespace ${namespace}
")
endfunction()

# weft_backend(name): this folder as a plug-in, <name>.so. Its sources are *.cpp and kernels/<op>.<variant>.cpp; the records of
# kernels/ are in namespace weft::kernels.
function(weft_backend name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cpp")
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.cpp")
  weft_kernel_table("${CMAKE_CURRENT_SOURCE_DIR}/kernels" weft::kernels "${generated}")
  add_library(${name} MODULE ${sources} ${kernels} "${generated}")
  target_link_libraries(${name} PRIVATE Weft::backend_headers)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
endfunction()
