# weft_backend(name): this folder as a plug-in, <name>.so. Its sources are *.cpp and kernels/<op>.<variant>.cpp; each file in
# kernels/ defines `extern const weft::backend::KernelRecord <op>_<variant>` in namespace weft::kernels, and
# `std::vector<weft::backend::KernelRecord> weft::kernels::own()` is made from their names.
function(weft_backend name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cpp")
  set(declare "")
  set(list "")
  foreach(file IN LISTS kernels)
    get_filename_component(record "${file}" NAME)
    string(REGEX REPLACE "\\.cpp$" "" record "${record}")
    string(REPLACE "." "_" record "${record}")
    string(APPEND declare "extern const backend::KernelRecord ${record};\n")
    string(APPEND list "${record}, ")
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
"// Made from the folder kernels/.
#include \"weft/backend.hpp\"

namespace weft::kernels {
${declare}std::vector<backend::KernelRecord> own() { return {${list}}; }
}  // namespace weft::kernels
")
  add_library(${name} MODULE ${sources} ${kernels} "${generated}")
  target_link_libraries(${name} PRIVATE Weft::backend_headers)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
endfunction()
