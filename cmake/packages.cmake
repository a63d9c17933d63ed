# For `pip install .`: headers that packages of PyPI's have (pyproject.toml names them) lie where pip has put those that the build wants,
# which Python knows.
find_package(Python 3.10 COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "
import importlib.metadata, os, sys
for wanted in sys.argv[1:]:
    files = importlib.metadata.files(wanted)
    print({os.path.realpath(f.locate()).split('/include/')[0] for f in files if '/include/' in str(f)}.pop())
" ${WEFT_HEADERS_OF} OUTPUT_VARIABLE fetched ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
list(APPEND CMAKE_PREFIX_PATH ${fetched})
