# cmake -DOUT=file -DLIST=file -P contents.cmake: writes seam::builtin_contents(), a hash of the files that LIST names and of the
# words in FLAGS.
file(STRINGS "${LIST}" files)
set(all "${FLAGS}")
foreach(file IN LISTS files)
  file(SHA256 "${file}" hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING "${hash}" 0 16 hash)
file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT
"// Made from the sources of all that is built in and runs calls.
#include \"seam/builtin.h\"

namespace weft::seam {
const char* builtin_contents() { return \"${hash}\"; }
}  // namespace weft::seam
")
