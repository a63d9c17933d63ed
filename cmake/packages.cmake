# For `pip install .` on Debian: all packages that are missing at once, with the command that installs them. The list is that of
# scripts/lib/setup.sh, which installs them for the other builds; a wheel takes those to compile with, but not those of the tests.
# Headers that packages of PyPI's have (pyproject.toml names them) lie where pip has put those that the build wants, which Python knows.
find_package(Python 3.10 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "
import importlib.metadata, os, sys
for wanted in sys.argv[1:]:
    files = importlib.metadata.files(wanted)
    print({os.path.realpath(f.locate()).split('/include/')[0] for f in files if '/include/' in str(f)}.pop())
" ${WEFT_HEADERS_OF} OUTPUT_VARIABLE fetched ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
list(APPEND CMAKE_PREFIX_PATH ${fetched})

find_program(DPKG_QUERY dpkg-query)
if(NOT DPKG_QUERY)
  return()  # another system: find_package says what is missing
endif()
file(READ "${PROJECT_SOURCE_DIR}/scripts/lib/setup.sh" setup)
string(REGEX MATCH "weft_packages=\\(([^)]*)\\)" found "${setup}")
string(REGEX REPLACE "[ \n]+" ";" wanted "${CMAKE_MATCH_1}")
list(FILTER wanted INCLUDE REGEX "(-dev|-headers|-compiler)$")
list(FILTER wanted EXCLUDE REGEX "^(libgtest|libbenchmark|python3)-dev$")
set(missing "")
foreach(package IN LISTS wanted)
  execute_process(COMMAND "${DPKG_QUERY}" -W -f "\${db:Status-Status}" "${package}" OUTPUT_VARIABLE status ERROR_QUIET)
  if(NOT status MATCHES "^installed")
    list(APPEND missing "${package}")
  endif()
endforeach()
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "Weft is built with packages of Debian's that are not installed here. As root:\n  apt-get install --no-install-recommends ${missing}\nand then `pip install .` again.")
endif()
