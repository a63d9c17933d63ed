# For `pip install .` on Debian: all packages that are missing at once, with the command that installs them, before CMake asks for the
# first of them. The list is that of scripts/lib/setup.sh, which installs them for the other builds; a wheel takes those to compile
# with, but not those of the tests.
find_program(DPKG_QUERY dpkg-query)
if(NOT DPKG_QUERY)
  return()  # another system: project() and find_package() say what is missing
endif()
file(READ "${CMAKE_CURRENT_LIST_DIR}/../scripts/lib/setup.sh" setup)
string(REGEX MATCH "weft_packages=\\(([^)]*)\\)" found "${setup}")
string(REGEX REPLACE "[ \n]+" ";" wanted "${CMAKE_MATCH_1}")
list(FILTER wanted INCLUDE REGEX "(^g\\+\\+|-dev|-headers|-compiler)$")
list(FILTER wanted EXCLUDE REGEX "^(libgtest|libbenchmark|python3)-dev$")
if(DEFINED ENV{CXX})
  list(REMOVE_ITEM wanted g++)
endif()
set(missing "")
foreach(package IN LISTS wanted)
  execute_process(COMMAND "${DPKG_QUERY}" -W -f "\${db:Status-Status}" "${package}" OUTPUT_VARIABLE status ERROR_QUIET)
  if(NOT status MATCHES "^installed")
    list(APPEND missing "${package}")
  endif()
endforeach()
# Debian's Python has its headers in a package of their own, others bring them.
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import os, sysconfig; print(os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
                OUTPUT_VARIABLE headers ERROR_QUIET)
if(headers MATCHES "False")
  list(APPEND missing python3-dev)
endif()
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "Weft is built with packages of Debian's that are not installed here. As root:\n  apt-get install --no-install-recommends ${missing}\nand then `pip install .` again.")
endif()
