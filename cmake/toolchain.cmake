find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are cached by content, not by the time at which they were made.
  set(sloppiness pch_defines,time_macros)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    string(APPEND sloppiness ,include_file_mtime,include_file_ctime)
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CURRENT_LIST_DIR}/ccache.sh" ${sloppiness} "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
# GCC collects garbage each time its memory has doubled, behind a precompiled header for nearly every file: a tenth of the time.
# Up to a gigabyte it does without.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(weft_compiler_memory "--param=ggc-min-heapsize=1048576")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${weft_compiler_memory}>)
endif()
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wsuggest-override>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow)  # false alarms of GCC 12 in std::string: bug 105329
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations)  # false alarms of libstdc++ 12: its std::stable_sort calls what is
endif()
if(WEFT_SANITIZE)
  string(REPLACE "address" "address,undefined" sanitizers "${WEFT_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${sanitizers})
  add_compile_options(-fno-sanitize-recover=undefined)  # what is undefined ends the program, like an address that is wrong
endif()
# The host's own code gains nothing from -O3 but build time; kernels do (backends/native/builtin.cmake).
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

# What runs once for a model or a program, or calls builders, which have the work: -O1 takes half of -O2's time to compile. A
# target, or files.
function(weft_compiled_lightly)
  weft_compiled_with(-O1 ${ARGN})
endfunction()
# What only calls the libraries, which have the work: that it compiles quickly is worth more than how it runs. A target, or files.
function(weft_compiled_quickly)
  weft_compiled_with(-Og ${ARGN})
endfunction()
function(weft_compiled_with option first)
  if(TARGET "${first}")
    target_compile_options(${first} PRIVATE $<$<CONFIG:Release>:${option}>)
  else()
    set_property(SOURCE ${first} ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:${option}>)
  endif()
endfunction()

# A function or constant that nothing reaches is left out of a static program.
function(weft_linked_in_parts target)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
endfunction()

# A precompiled header knows its headers by their absolute paths, so a cache that is shared by copies of the tree
# (CCACHE_BASEDIR) must not hand one copy's to another: the definition keeps their keys apart. A copy that is compiled while its
# original stays as it is may go by the original's name, and be handed its headers and objects.
set(WEFT_TREE "${PROJECT_BINARY_DIR}" CACHE STRING "the tree that a cache takes this one for")
mark_as_advanced(WEFT_TREE)
# weft_precompile(target header...), or (target REUSE_FROM other), which is compiled in the same way.
function(weft_precompile target)
  if("${ARGV1}" STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  target_compile_definitions(${target} PRIVATE WEFT_TREE="${WEFT_TREE}")
endfunction()
# The same as flags, for the backends that are built out of tree.
string(MD5 tree "${WEFT_TREE}")
set(weft_flags_out_of_tree "-DWEFT_TREE=tree_${tree} ${weft_compiler_memory}")
if(CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  string(APPEND weft_flags_out_of_tree " -fpch-preprocess")
endif()
