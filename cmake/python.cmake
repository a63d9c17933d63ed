# The Python package: the extension weft._weft, and beside it the files of python/weft, in <build>/python/weft. With that folder in
# PYTHONPATH `import weft` finds it; `pip install .` makes a wheel of the same (pyproject.toml).
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)
if(SKBUILD)  # pip has fetched nanobind, and Python knows where
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE fetched ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
find_package(nanobind CONFIG HINTS "${fetched}" "${PROJECT_SOURCE_DIR}/build/nanobind/nanobind/cmake" REQUIRED)

weft_sources(python_sources python/src)
weft_folder_batches(python_sources weft_python)
weft_compiled_as_wanted(${python_sources})
nanobind_add_module(weft_python NB_STATIC NOMINSIZE ${python_sources} src/eager/faces/python.cpp)
set_target_properties(weft_python PROPERTIES OUTPUT_NAME _weft LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/weft")
target_include_directories(weft_python PRIVATE src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(weft_python PRIVATE weft_conformance)  # it runs the tests that program files carry
target_link_options(weft_python PRIVATE -Wl,--exclude-libs,ALL)
weft_compiled_quickly(nanobind-static)
set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)  # as its nb_combined.cpp: headers are read once
weft_precompile(weft_python <nanobind/nanobind.h> <nanobind/stl/string.h> <map> include/weft/tensor.h)

# The files beside it are links, so that an edit needs no build.
file(GLOB_RECURSE package CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/weft/*.py" "${PROJECT_SOURCE_DIR}/python/weft/*.pyi"
     "${PROJECT_SOURCE_DIR}/python/weft/py.typed")
foreach(file IN LISTS package)
  file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}/python" "${file}")
  get_filename_component(folder "${PROJECT_BINARY_DIR}/python/${path}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${file}" "${PROJECT_BINARY_DIR}/python/${path}" SYMBOLIC)
endforeach()

# _weft/*.pyi: what type checkers and editors see. Types of the ops are from their definitions; all else the extension says itself.
set(patterns "${PROJECT_BINARY_DIR}/generated/python_ops.txt")
add_custom_command(OUTPUT "${patterns}"
  COMMAND weft_faces --python "${patterns}" "${PROJECT_SOURCE_DIR}/python/stubs.txt"
  DEPENDS weft_faces "${PROJECT_SOURCE_DIR}/python/stubs.txt" VERBATIM)
set(stub "${PROJECT_BINARY_DIR}/python/weft/_weft/__init__.pyi")
add_custom_command(OUTPUT "${stub}"
  COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${PROJECT_BINARY_DIR}/python" "${Python_EXECUTABLE}" "${NB_DIR}/stubgen.py" -q
          -m weft._weft -r -P -p "${patterns}" -O "${PROJECT_BINARY_DIR}/python/weft"
  DEPENDS weft_python "${patterns}" VERBATIM)
add_custom_target(weft_python_stub ALL DEPENDS "${stub}")

# In the wheel the libraries of Debian's that the extension needs lie beside it, so that it imports where they are not installed;
# those of C, C++ and the compiler every Debian has. Three folders up is <prefix>/lib, where PyPI's packages put libraries.
set_target_properties(weft_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../../..")
install(TARGETS weft_python RUNTIME_DEPENDENCY_SET weft_python_needs LIBRARY DESTINATION weft COMPONENT python EXCLUDE_FROM_ALL)
install(RUNTIME_DEPENDENCY_SET weft_python_needs
        PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s))\\.(so|so\\..*)$" "^linux-vdso.*"
        LIBRARY DESTINATION weft/lib COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY "${PROJECT_BINARY_DIR}/python/weft/_weft" DESTINATION weft COMPONENT python EXCLUDE_FROM_ALL)

# Kernels of backends in Python, which weft.lab runs from there, too; a build's package finds them in the sources.
file(GLOB kernels CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/backends/*/kernels/*.py")
foreach(file IN LISTS kernels)
  get_filename_component(folder "${file}" DIRECTORY)
  install(FILES "${file}" DESTINATION "weft/lab/providers/${folder}" COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
