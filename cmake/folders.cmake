# Files and folders are the registry. Every list below is made by looking; none is edited.

# weft_sources(out folder...): the .cpp files directly in those folders.
function(weft_sources out)
  set(found "")
  foreach(folder IN LISTS ARGN)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    list(APPEND found ${files})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# A folder's compiled.txt says how its files, and those of folders below that have none, are compiled: lines "<how> [file...]", where
# one without files is for all others. fast: as the build's flags say, and where no folder says anything; lightly, quickly:
# cmake/toolchain.cmake; small: for size.
file(GLOB_RECURSE wanted CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/compiled.txt" "${PROJECT_SOURCE_DIR}/conformance/compiled.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${wanted})
function(weft_wanted out file)
  set(${out} fast PARENT_SCOPE)
  get_filename_component(name "${file}" NAME)
  get_filename_component(folder "${file}" DIRECTORY)
  while(folder MATCHES "^${PROJECT_SOURCE_DIR}/" AND NOT EXISTS "${folder}/compiled.txt")
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
  if(NOT EXISTS "${folder}/compiled.txt")
    return()
  endif()
  file(STRINGS "${folder}/compiled.txt" lines)
  foreach(line IN LISTS lines)
    separate_arguments(words UNIX_COMMAND "${line}")
    list(POP_FRONT words how)
    if(NOT how MATCHES "^(fast|lightly|quickly|small)$")
      message(FATAL_ERROR "${folder}/compiled.txt: '${how}' is no way to compile; there are fast, lightly, quickly, small")
    endif()
    if(name IN_LIST words)
      set(${out} ${how} PARENT_SCOPE)
      return()
    elseif(NOT words)
      set(${out} ${how} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# weft_small_files(out file...): those of the files that are wanted small.
function(weft_small_files out)
  set(found "")
  foreach(file IN LISTS ARGN)
    weft_wanted(how "${file}")
    if(how STREQUAL "small")
      list(APPEND found "${file}")
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# weft_compiled_as_wanted(file...): sets their options. For size there is a target of its own.
function(weft_compiled_as_wanted)
  foreach(file IN LISTS ARGN)
    weft_wanted(how "${file}")
    if(how STREQUAL "lightly")
      weft_compiled_lightly("${file}")
    elseif(how STREQUAL "quickly")
      weft_compiled_quickly("${file}")
    endif()
  endforeach()
endfunction()

# Writes `text` to `path` only if it differs, so that nothing is rebuilt for the sake of it.
function(weft_write_if_different path text)
  if(EXISTS "${path}")
    file(READ "${path}" old)
  endif()
  if(NOT "${old}" STREQUAL "${text}")
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# weft_take_objects(sources target): replaces the files among `sources` of which WEFT_OBJECTS lists the objects by these.
function(weft_take_objects sources target)
  if(NOT WEFT_OBJECTS_FROM OR NOT EXISTS "${WEFT_OBJECTS}")
    return()
  endif()
  file(STRINGS "${WEFT_OBJECTS}" listed)
  set(all "")
  foreach(file IN LISTS ${sources})
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${file}")
    file(RELATIVE_PATH made "${PROJECT_BINARY_DIR}" "${file}")
    if(NOT made MATCHES "^\\.\\./")
      set(path "${made}")
      weft_are_same(same "${file}" "${WEFT_OBJECTS_FROM}/${made}")
    else()
      set(same TRUE)
    endif()
    if(same AND "CMakeFiles/${target}.dir/${path}.o" IN_LIST listed)
      list(APPEND all "${WEFT_OBJECTS_FROM}/CMakeFiles/${target}.dir/${path}.o")
    else()
      list(APPEND all "${file}")
    endif()
  endforeach()
  set(${sources} ${all} PARENT_SCOPE)
endfunction()
function(weft_are_same out one other)
  set(${out} FALSE PARENT_SCOPE)
  if(EXISTS "${one}" AND EXISTS "${other}")
    file(READ "${one}" a)
    file(READ "${other}" b)
    if(a STREQUAL b)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

# weft_object_library(out target file...): `out` are their objects. Without a target, where all are taken from another build.
function(weft_object_library out target)
  set(files ${ARGN})
  weft_take_objects(files ${target})
  set(objects ${files})
  list(FILTER objects INCLUDE REGEX "\\.o$")
  list(FILTER files EXCLUDE REGEX "\\.o$")
  if(files MATCHES "\\.cpp")
    add_library(${target} OBJECT ${files})
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# weft_batches(sources name): replaces the list of files by fewer, <name>_<letter>.cpp, each of which includes those that begin
# with that letter: what small files include, and the templates that all of them use, cost more than what they say. Each of
# them is still whole, and its names are its own: WEFT_BATCHES=OFF compiles it by itself. The paths are those below the include
# path, that a cache knows them in a copy of the tree.
function(weft_batches sources name)
  if(NOT WEFT_BATCHES)
    return()
  endif()
  set(letters "")
  foreach(file IN LISTS ${sources})
    get_filename_component(stem "${file}" NAME)
    string(SUBSTRING "${stem}" 0 1 letter)
    list(APPEND letters "${letter}")
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${file}")
    string(APPEND batch_${letter} "#include \"${path}\"\n")
  endforeach()
  set(batches "")
  list(REMOVE_DUPLICATES letters)
  foreach(letter IN LISTS letters)
    set(batch "${PROJECT_BINARY_DIR}/generated/${name}_${letter}.cpp")
    weft_write_if_different("${batch}" "${batch_${letter}}")
    list(APPEND batches "${batch}")
  endforeach()
  set(${sources} ${batches} PARENT_SCOPE)
endfunction()

# weft_folder_batches(sources target): with WEFT_FOLDER_BATCHES replaces the files of a folder by one that includes them, for each
# folder, as what they share costs the compiler more than what each says. So the sanitizers are built, which hardly optimise; a
# release is not, so that a change compiles one file. Those of `alone` have names that each file has for itself. A batch lies below
# a folder of the same path, by which weft_watch_branches knows it.
function(weft_folder_batches sources target)
  if(NOT WEFT_FOLDER_BATCHES)
    return()
  endif()
  set(alone "^(src/(ops|loops|import/aten)|conformance/liars|backends/.*)$")
  set(all "")
  set(folders "")
  foreach(file IN LISTS ${sources})
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}")
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${file}")
    get_filename_component(folder "${path}" DIRECTORY)
    file(RELATIVE_PATH made "${PROJECT_BINARY_DIR}" "${file}")
    if(NOT made MATCHES "^\\.\\./" OR NOT path MATCHES "\\.cpp$" OR folder MATCHES "${alone}")
      list(APPEND all "${file}")
      continue()
    endif()
    list(APPEND folders "${folder}")
    string(APPEND batch_${folder} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(batch "${PROJECT_BINARY_DIR}/generated/${target}/${folder}/all.cpp")
    weft_write_if_different("${batch}" "${batch_${folder}}")
    list(APPEND all "${batch}")
  endforeach()
  set(${sources} ${all} PARENT_SCOPE)
endfunction()

# src/ops/<name>.cpp defines `constinit const ir::OpDef <name>`; this adds the table of all of them.
function(weft_op_registry sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(op "${file}" NAME_WE)
    string(APPEND declare "extern const ir::OpDef ${op};\n")
    string(APPEND table "    &${op},\n")
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/op_registry.cpp")
  weft_write_if_different("${generated}" "// Made from the folder src/ops.\n#include \"ir/op.h\"\n\nnamespace weft::ops {\n${declare}}\n\nnamespace weft::ir {\nusing namespace ops;\nstatic const OpDef* const kOps[] = {\n${table}};\nstd::span<const OpDef* const> all_ops() { return kOps; }\n}  // namespace weft::ir\n")
  set(${sources} ${${sources}} "${generated}" PARENT_SCOPE)
endfunction()

# The public functions of all ops: include/weft/ops.h and its source, printed by weft_faces.
function(weft_generated_faces out)
  set(header "${PROJECT_BINARY_DIR}/include/weft/ops.h")
  set(source "${PROJECT_BINARY_DIR}/generated/op_faces.cpp")
  add_custom_command(OUTPUT "${header}" "${source}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${PROJECT_BINARY_DIR}/include/weft" "${PROJECT_BINARY_DIR}/generated"
    COMMAND weft_faces "${header}" "${source}" DEPENDS weft_faces VERBATIM)
  set(${out} "${header}" "${source}" PARENT_SCOPE)
endfunction()

# seam::builtin_contents(): what tells kernels that were measured from kernels that were changed since.
function(weft_builtin_contents out)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/*" "${PROJECT_SOURCE_DIR}/include/weft/shared/*"
       "${PROJECT_SOURCE_DIR}/src/codegen/*" "${PROJECT_SOURCE_DIR}/src/loops/*")
  list(SORT files)
  set(list "${PROJECT_BINARY_DIR}/generated/builtin_contents.txt")
  set(generated "${PROJECT_BINARY_DIR}/generated/builtin_contents.cpp")
  string(REPLACE ";" "\n" lines "${files}")
  weft_write_if_different("${list}" "${lines}\n")
  add_custom_command(OUTPUT "${generated}"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${generated}" "-DLIST=${list}"
            "-DFLAGS=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_BUILD_TYPE}"
            -P "${PROJECT_SOURCE_DIR}/cmake/contents.cmake"
    DEPENDS ${files} "${list}" "${PROJECT_SOURCE_DIR}/cmake/contents.cmake" VERBATIM)
  set(${out} "${generated}" PARENT_SCOPE)
endfunction()

# The table of those backends at `path`; with_loops: and of the provider `loops`.
function(weft_backend_table path with_loops)
  set(declare "")
  set(table "")
  foreach(name IN LISTS ARGN)
    string(APPEND declare "extern \"C\" weft_code weft_negotiate_${name}(const weft_host*, const weft_backend**, weft_error*);\n")
    string(APPEND table "    {\"${name}\", weft_negotiate_${name}},\n")
  endforeach()
  set(loops "namespace weft::seam {\nstd::span<const Provider> builtin_providers() { return {}; }\ndecltype(weft_host::render) builtin_render() { return nullptr; }\n}  // namespace weft::seam\n")
  if(with_loops)
    set(loops "namespace weft::loops {\nextern const seam::Provider provider;\nuint64_t render(const weft_call*, const char*, char*, uint64_t, weft_error*);\n}\nnamespace weft::seam {\nstd::span<const Provider> builtin_providers() { return {&loops::provider, 1}; }\ndecltype(weft_host::render) builtin_render() { return loops::render; }\n}  // namespace weft::seam\n")
  endif()
  weft_write_if_different("${path}" "// Made from the folders under backends/ that hold a builtin.cmake.\n#include \"seam/builtin.h\"\n\n${declare}\nnamespace weft::seam {\nstatic const Builtin kBuiltins[] = {\n${table}};\nstd::span<const Builtin> builtin_backends() { return kBuiltins; }\n}  // namespace weft::seam\n\n${loops}")
endfunction()

# weft_compiled_backend(out name options file...): how the files of a built-in backend are compiled. Those of one with a folder
# kernels/ are many, so they have a precompiled header; each backend has its own WEFT_NEGOTIATE, and so a header of its own.
function(weft_compiled_backend out name options)
  set(defined "WEFT_NEGOTIATE=weft_negotiate_${name}")
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/backends/${name}/kernels")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS "${defined}" COMPILE_OPTIONS "${options}"
                                SKIP_PRECOMPILE_HEADERS ON)  # each is compiled in its own way
    set(files ${ARGN})
    weft_take_objects(files weft_runtime)
    set(${out} ${files} PARENT_SCOPE)
    return()
  endif()
  set(target weft_backend_${name})
  weft_object_library(objects ${target} ${ARGN})
  set(${out} ${objects} PARENT_SCOPE)
  if(NOT TARGET ${target})
    return()
  endif()
  target_include_directories(${target} PRIVATE include src ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE "${defined}")
  target_compile_options(${target} PRIVATE ${options})
  weft_linked_in_parts(${target})
  weft_precompile(${target} include/weft/backend.hpp)
endfunction()

# Each backends/<name>/builtin.cmake whose USE_<NAME> is on, and the provider `loops`, under one table.
function(weft_builtin_backends out)
  file(GLOB folders RELATIVE "${PROJECT_SOURCE_DIR}/backends" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/*/builtin.cmake")
  set(found "")
  set(names "")
  foreach(file IN LISTS folders)
    get_filename_component(name "${file}" DIRECTORY)
    string(TOUPPER "USE_${name}" option_name)
    if(NOT ${option_name})
      continue()
    endif()
    # It may set(WEFT_BACKEND_SKIP "reason") where something that the build needs is missing, and
    # list(APPEND WEFT_BACKEND_LIBRARIES ...) what it links and
    # list(APPEND WEFT_BACKEND_OPTIONS ...) how its files are compiled.
    unset(WEFT_BACKEND_SKIP)
    unset(WEFT_BACKEND_OPTIONS)
    include("${PROJECT_SOURCE_DIR}/backends/${file}")
    if(WEFT_BACKEND_SKIP)
      message(STATUS "backend ${name} is left out: ${WEFT_BACKEND_SKIP}")
      continue()
    endif()
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/${name}/*.cpp" "${PROJECT_SOURCE_DIR}/backends/${name}/kernels/*.cpp")
    if(EXISTS "${PROJECT_SOURCE_DIR}/backends/${name}/kernels")
      weft_kernel_table("${PROJECT_SOURCE_DIR}/backends/${name}/kernels" weft::${name} "${PROJECT_BINARY_DIR}/generated/${name}_kernels.cpp")
      list(APPEND files "${PROJECT_BINARY_DIR}/generated/${name}_kernels.cpp")
    endif()
    weft_compiled_backend(objects "${name}" "${WEFT_BACKEND_OPTIONS}" ${files})
    list(APPEND found ${objects})
    list(APPEND names ${name})
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/builtin_backends.cpp")
  weft_backend_table("${generated}" ON ${names})
  weft_builtin_contents(contents)
  set(${out} ${found} "${generated}" "${contents}" PARENT_SCOPE)
  set(WEFT_BACKEND_LIBRARIES ${WEFT_BACKEND_LIBRARIES} PARENT_SCOPE)
  set(WEFT_BUILTIN_BACKENDS ${names} PARENT_SCOPE)
endfunction()

function(weft_flatbuffers out schema)
  find_program(FLATC flatc REQUIRED)
  get_filename_component(stem "${schema}" NAME_WE)
  set(header "${PROJECT_BINARY_DIR}/generated/${stem}_generated.h")
  add_custom_command(OUTPUT "${header}"
    COMMAND ${FLATC} --cpp --scoped-enums -o "${PROJECT_BINARY_DIR}/generated" "${PROJECT_SOURCE_DIR}/${schema}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${schema}" VERBATIM)
  set(${out} "${header}" PARENT_SCOPE)
endfunction()

# The headers of the seam: all that a backend may see of Weft.
set(weft_sdk_headers PATTERN "backend.h" PATTERN "backend.hpp" PATTERN "dtype.h" REGEX "/backend/.*\\.hpp$" REGEX "/shared/.*\\.hpp$")

# weft_plugin_built_before(found plugin name): whether WEFT_PLUGINS_FROM has it; then it is copied to the file `plugin`.
function(weft_plugin_built_before found plugin name)
  set(before "${WEFT_PLUGINS_FROM}/${name}.so")
  set(${found} FALSE PARENT_SCOPE)
  if(EXISTS "${before}" AND NOT name IN_LIST WEFT_PLUGINS_ANEW)
    add_custom_command(OUTPUT "${plugin}" COMMAND ${CMAKE_COMMAND} -E copy "${before}" "${plugin}" DEPENDS "${before}" VERBATIM)
    set(${found} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Each backends/<name>/CMakeLists.txt without a builtin.cmake: built out of tree into plugins/<name>.so, as a hardware maker
# would, against nothing but the installed sdk in <build>/sdk. ThreadSanitizer watches them too, since `far` has threads; other
# sanitizers watch the host only.
function(weft_out_of_tree_backends)
  set(sdk "${PROJECT_BINARY_DIR}/sdk")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/weft/*")
  add_custom_command(OUTPUT "${sdk}.stamp"
    COMMAND ${CMAKE_COMMAND} --install "${PROJECT_BINARY_DIR}" --component sdk --prefix "${sdk}"
    COMMAND ${CMAKE_COMMAND} -E touch "${sdk}.stamp"
    DEPENDS ${headers} "${PROJECT_SOURCE_DIR}/cmake/WeftBackend.cmake" "${PROJECT_BINARY_DIR}/WeftConfig.cmake"
    COMMENT "Staging the backend sdk" VERBATIM)
  file(GLOB folders RELATIVE "${PROJECT_SOURCE_DIR}/backends" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/*/CMakeLists.txt")
  foreach(file IN LISTS folders)
    get_filename_component(name "${file}" DIRECTORY)
    set(folder "${PROJECT_SOURCE_DIR}/backends/${name}")
    string(TOUPPER "BUILD_${name}" wanted)
    if(EXISTS "${folder}/builtin.cmake" OR NOT ${wanted})
      continue()
    endif()
    # built_on.txt names the backend whose files are compiled into this one, too.
    set(sources_of "${folder}/*")
    if(EXISTS "${folder}/built_on.txt")
      file(STRINGS "${folder}/built_on.txt" other)
      list(APPEND sources_of "${PROJECT_SOURCE_DIR}/backends/${other}/*")
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${sources_of})
    set(plugin "${PROJECT_BINARY_DIR}/plugins/${name}.so")
    list(APPEND plugins "${plugin}")
    weft_plugin_built_before(found "${plugin}" "${name}")
    if(found)
      continue()
    endif()
    set(flags "${weft_flags_out_of_tree}")
    if(WEFT_SANITIZE STREQUAL "thread")
      string(APPEND flags " -fsanitize=thread -g1")
    endif()
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    set(type_flags "${CMAKE_CXX_FLAGS_${type}}")
    if(type STREQUAL "RELEASE" AND NOT EXISTS "${folder}/build_wants.txt")
      set(type_flags "-O1 -DNDEBUG")  # those that every build has are judged here, not timed
    endif()
    add_custom_command(OUTPUT "${plugin}"
      COMMAND ${CMAKE_COMMAND} -S "${folder}" -B "${PROJECT_BINARY_DIR}/out_of_tree/${name}" -G "${CMAKE_GENERATOR}"
              "-DCMAKE_PREFIX_PATH=${sdk}" "-DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}"
              "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}"
              "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_CXX_FLAGS_${type}=${type_flags}"
              "-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${PROJECT_BINARY_DIR}/plugins"
              --log-level=WARNING
      COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}/out_of_tree/${name}"
      COMMAND ${CMAKE_COMMAND} -E touch "${plugin}"
      DEPENDS ${sources} "${sdk}.stamp" COMMENT "Building backend ${name} out of tree" VERBATIM)
  endforeach()
  add_custom_target(weft_out_of_tree_backends DEPENDS ${plugins})
  add_dependencies(weft_tests weft_out_of_tree_backends)
endfunction()

# tests/plugins/<name>.cpp: each one is built as a plug-in, against the public headers only. No sanitizer watches them, as they
# come from elsewhere: those of a build without sanitizers are the same.
function(weft_test_plugins)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/plugins/*.cpp" "${PROJECT_SOURCE_DIR}/tests/plugins/*.c")
  foreach(file IN LISTS files)
    get_filename_component(plugin "${file}" NAME_WE)
    set(copy "${PROJECT_BINARY_DIR}/plugins/${plugin}.so")
    weft_plugin_built_before(found "${copy}" "${plugin}")
    if(found)
      add_custom_target(plugin_${plugin} DEPENDS "${copy}")
    else()
      add_library(plugin_${plugin} MODULE "${file}")
      set_target_properties(plugin_${plugin} PROPERTIES PREFIX "" OUTPUT_NAME "${plugin}"
                            LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/plugins")
      target_include_directories(plugin_${plugin} PRIVATE include)
      target_compile_options(plugin_${plugin} PRIVATE -fno-sanitize=all)
      weft_compiled_quickly(plugin_${plugin})
    endif()
    add_dependencies(weft_tests plugin_${plugin})
  endforeach()
  weft_out_of_tree_backends()
endfunction()

# What libFuzzer sees of the targets: which branches an input took, and what was compared. It costs half as much again in time
# and text, so nothing else has it, and of the library only what reads the text and bytes of others.
function(weft_watch_branches)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    get_target_property(files ${target} SOURCES)
    list(FILTER files EXCLUDE REGEX "/(fuzz|src/(base|cli|formats|import|io|ir|nn|ops|program))/")
    set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS
                 -fno-sanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table,stack-depth)
  endforeach()
endfunction()

# fuzz/<name>.cpp is the fuzz target <name>, a program in <build>/fuzz. All of them: the target `fuzz_targets`.
function(weft_fuzz_targets)
  weft_watch_branches(weft_base weft_core weft_loaded weft_runtime weft)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*.cpp")
  add_custom_target(fuzz_targets)
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    add_executable(fuzz_${name} "${file}")
    set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    target_include_directories(fuzz_${name} PRIVATE src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(fuzz_${name} PRIVATE weft nlohmann_json::nlohmann_json)
    weft_watch_branches(fuzz_${name})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets fuzz_${name})
  endforeach()
  # The options' target is the command line without the commands.
  target_sources(fuzz_options PRIVATE src/cli/face/syntax.cpp src/cli/face/face.cpp src/cli/face/json.cpp src/cli/face/show.cpp
                                      src/cli/text/reading.cpp src/cli/training/options.cpp)
  target_link_libraries(fuzz_options PRIVATE CLI11::CLI11)
  set_target_properties(fuzz_options PROPERTIES UNITY_BUILD ${WEFT_FOLDER_BATCHES} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# src/cli/<name>.cpp is the subcommand <name>; main.cpp runs it.
function(weft_cli_commands sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    if(NOT name STREQUAL "main")
      string(APPEND declare "extern const Command ${name}_command;\n")
      string(APPEND table "      ${name}_command,\n")
    endif()
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/cli_commands.cpp")
  weft_write_if_different("${generated}" "// Made from the folder src/cli.\n#include \"cli/command.h\"\n\nnamespace weft::cli {\n${declare}std::span<const Command> all_commands() {\n  static const Command commands[] = {\n${table}  };\n  return commands;\n}\n}  // namespace weft::cli\n")
  set(${sources} ${${sources}} "${generated}" PARENT_SCOPE)
endfunction()

# src/import/aten/<family>.cpp defines `const Family <family>`; this adds them, the table of all, and the names of
# PyTorch's core set in src/import/core_aten.txt.
function(weft_aten_families sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/import/aten/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(family "${file}" NAME_WE)
    string(APPEND declare "extern const Family ${family}_family;\n")
    string(APPEND table "    &${family}_family,\n")
  endforeach()
  set(list "${PROJECT_SOURCE_DIR}/src/import/core_aten.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" names)
  list(JOIN names "\",\n    \"" names)
  set(generated "${PROJECT_BINARY_DIR}/generated/aten_families.cpp")
  weft_write_if_different("${generated}" "// Made from the folder src/import/aten and src/import/core_aten.txt.\n#include \"import/call.h\"\n\nnamespace weft::importer {\n${declare}static const Family* const kFamilies[] = {\n${table}};\nstd::span<const Family* const> all_families() { return kFamilies; }\nstatic const char* const kCore[] = {\n    \"${names}\",\n};\nstd::span<const char* const> core_aten() { return kCore; }\n}  // namespace weft::importer\n")
  set(${sources} ${${sources}} ${files} "${generated}" PARENT_SCOPE)
endfunction()

# src/compiler/recompositions/<name>.cpp defines `const Recomposition <name>_recomposition`; this adds them and the table of all.
function(weft_recompositions sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/compiler/recompositions/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND declare "extern const Recomposition ${name}_recomposition;\n")
    string(APPEND table "    &${name}_recomposition,\n")
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/recompositions.cpp")
  weft_write_if_different("${generated}" "// Made from the folder src/compiler/recompositions.\n#include \"compiler/recompose.h\"\n\nnamespace weft::compiler {\n${declare}static const Recomposition* const kRecompositions[] = {\n${table}};\nstd::span<const Recomposition* const> all_recompositions() { return kRecompositions; }\n}  // namespace weft::compiler\n")
  set(${sources} ${${sources}} ${files} "${generated}" PARENT_SCOPE)
endfunction()

# conformance/checks/<folder>/<name>.cpp defines `const Check check` in namespace checks::<name>, for the folders that are named;
# conformance/liars/<file>.cpp `Liars <file>_liars()`: these files, and the tables of all of them.
function(weft_checks sources)
  set(files "")
  set(declare "")
  set(checks "")
  set(liars "")
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/conformance/checks/${folder}/*.cpp")
    foreach(file IN LISTS found)
      get_filename_component(name "${file}" NAME_WE)
      string(APPEND declare "namespace checks::${name} {\nextern const Check check;\n}\n")
      string(APPEND checks "&checks::${name}::check, ")
    endforeach()
    list(APPEND files ${found})
  endforeach()
  weft_batches(files checks)
  weft_compiled_quickly(${files})
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/conformance/liars/*.cpp")
  foreach(file IN LISTS found)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND declare "Liars ${name}_liars();\n")
    string(APPEND liars "${name}_liars(), ")
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/checks.cpp")
  weft_compiled_quickly("${generated}")
  weft_write_if_different("${generated}" "// Made from the folders conformance/checks and conformance/liars.\n#include \"conformance/check.h\"\n#include \"conformance/liars/liar.h\"\n\nnamespace weft::conformance {\n${declare}std::span<const Check* const> all_checks() {\n  static const Check* const all[] = {${checks}};\n  return all;\n}\nstd::vector<Liar> all_liars() {\n  std::vector<Liar> all;\n  for (const Liars& file : {${liars}}) all.insert(all.end(), file.begin(), file.end());\n  return all;\n}\n}  // namespace weft::conformance\n")
  set(${sources} ${${sources}} ${files} ${found} "${generated}" PARENT_SCOPE)
endfunction()

# src/lab/providers/<name>.cpp defines `const Provider <name>_provider`; this adds them and the table of all.
function(weft_lab_providers sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/lab/providers/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND declare "extern const Provider ${name}_provider;\n")
    string(APPEND table "&${name}_provider, ")
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/lab_providers.cpp")
  weft_compiled_quickly("${generated}")
  weft_write_if_different("${generated}" "// Made from the folder src/lab/providers.\n#include \"lab/kernels/provider.h\"\n\nnamespace weft::lab {\n${declare}std::span<const Provider* const> all_providers() {\n  static const Provider* const all[] = {${table}};\n  return all;\n}\n}  // namespace weft::lab\n")
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/lab/providers/source.cpp APPEND PROPERTY COMPILE_DEFINITIONS WEFT_SOURCE_HEADERS="${PROJECT_SOURCE_DIR}/include")
  set(${sources} ${${sources}} ${files} "${generated}" PARENT_SCOPE)
endfunction()

# conformance/ops/<op>.cpp defines `OpCases <op>_cases()`, conformance/rules/<family>.cpp `Rules <family>_rules()`; this adds
# them and the tables of all of them.
function(weft_case_files sources)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/conformance/ops/*.cpp")
  set(declare "")
  set(table "")
  foreach(file IN LISTS files)
    get_filename_component(op "${file}" NAME_WE)
    string(APPEND declare "OpCases ${op}_cases();\n")
    string(APPEND table "    {\"${op}\", ${op}_cases},\n")
  endforeach()
  weft_batches(files cases)
  weft_compiled_quickly(${files})
  file(GLOB families CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/conformance/rules/*.cpp")
  set(rules "")
  foreach(file IN LISTS families)
    get_filename_component(family "${file}" NAME_WE)
    string(APPEND declare "Rules ${family}_rules();\n")
    string(APPEND rules "${family}_rules(), ")
  endforeach()
  set(generated "${PROJECT_BINARY_DIR}/generated/case_files.cpp")
  weft_compiled_quickly("${generated}")
  weft_write_if_different("${generated}" "// Made from the folders conformance/ops and conformance/rules.\n#include \"conformance/cases.h\"\n#include \"conformance/rules.h\"\n\nnamespace weft::conformance {\n${declare}static const CaseFile kCaseFiles[] = {\n${table}};\nstd::span<const CaseFile> case_files() { return kCaseFiles; }\nstd::span<const Rules> rule_files() {\n  static const Rules all[] = {${rules}};\n  return all;\n}\n}  // namespace weft::conformance\n")
  set(${sources} ${${sources}} ${files} ${families} "${generated}" PARENT_SCOPE)
endfunction()

# A text file as a constant: page/graph.html is `graph_html` in the header of that name.
function(weft_text path)
  get_filename_component(file "${path}" NAME)
  string(REGEX REPLACE "[^a-z0-9]" "_" name "${file}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${path}")
  file(READ "${PROJECT_SOURCE_DIR}/${path}" text)
  weft_write_if_different("${PROJECT_BINARY_DIR}/generated/${name}.h" "// Made from ${path}.\n#pragma once\n#include <string_view>\n\ninline constexpr std::string_view ${name} = R\"__(${text})__\";\n")
endfunction()

# examples/c: linked as anybody would, and as one static program with one backend, for each of some.
function(weft_c_examples)
  set(source "${PROJECT_SOURCE_DIR}/examples/c/run.c")
  add_executable(weft_c_example "${source}")
  target_link_libraries(weft_c_example PRIVATE weft_runtime)
  set_target_properties(weft_c_example PROPERTIES LINKER_LANGUAGE CXX)
  file(GLOB missing CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/c/static/*.cpp")
  add_library(weft_c_missing OBJECT ${missing})
  target_compile_options(weft_c_missing PRIVATE -Os)
  weft_linked_in_parts(weft_c_missing)
  foreach(backend IN ITEMS reference native)
    if(NOT backend IN_LIST WEFT_BUILTIN_BACKENDS OR WEFT_SANITIZE)
      continue()
    endif()
    set(table "${PROJECT_BINARY_DIR}/generated/only_${backend}.cpp")
    weft_backend_table("${table}" OFF ${backend})
    add_executable(weft_c_static_${backend} "${source}" $<TARGET_OBJECTS:weft_c_missing> "${table}")
    add_dependencies(weft_c_static_${backend} weft_runtime)
    target_include_directories(weft_c_static_${backend} PRIVATE include src)
    target_link_libraries(weft_c_static_${backend} PRIVATE $<TARGET_FILE:weft_runtime> $<TARGET_FILE:weft_base>)
    target_link_options(weft_c_static_${backend} PRIVATE -static -Wl,--gc-sections -s)
    add_dependencies(weft_tests weft_c_static_${backend})
  endforeach()
  add_dependencies(weft_tests weft_c_example)
endfunction()

# generated/link_weft.txt: what a compiler is told to build one source against this build, as a project that uses the installed
# package does by Weft::weft. Tests of printed programs read it.
function(weft_link_line)
  set(libraries "")
  foreach(library IN LISTS WEFT_BACKEND_LIBRARIES)
    if(library MATCHES "^[a-z_0-9]+$")
      string(APPEND libraries "-l${library}\n")
    elseif(library MATCHES "^(\\$<INSTALL_INTERFACE:)?([-/].*[^>])>?$")
      string(APPEND libraries "${CMAKE_MATCH_2}\n")
    endif()
  endforeach()
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/link_weft.txt" CONTENT
"-std=c++20
-I${PROJECT_BINARY_DIR}/include
-I${PROJECT_SOURCE_DIR}/include
$<TARGET_FILE:weft>
$<TARGET_FILE:weft_core>
$<TARGET_FILE:weft_runtime>
$<TARGET_FILE:weft_base>
$<TARGET_FILE:fmt::fmt>
-lpcre2-8
-lutf8proc
${libraries}-pthread
-ldl
")
endfunction()
