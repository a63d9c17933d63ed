# cmake -DOUT=file -DSOURCE=folder -P commit.cmake: writes cli::commit_of_build(), the commit that is checked out in the folder.
find_package(Git QUIET)
set(commit unknown)
if(GIT_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE}" rev-parse --short=10 HEAD OUTPUT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit "${found}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT
"// Made when the checkout's log changes.
#include \"cli/lab/lab.h\"

namespace weft::cli {
const char* commit_of_build() { return \"${commit}\"; }
}  // namespace weft::cli
")
