#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/status.h"

// Text in files.
namespace weft::io {

/// UTF-8 to code points; each maximal part of a malformed sequence becomes U+FFFD, like in Python. `valid`
/// (may be null) says if there was none.
std::u32string from_utf8(std::string_view bytes, bool* valid = nullptr);
std::string to_utf8(std::u32string_view characters);

/// What was read, as UTF-8.
struct Text {
  std::string utf8;
  std::vector<std::string> files;  ///< in the order in which they were joined
  std::vector<std::string> notes;  ///< what was left out or read in another way, and why
};

/// Reads files, every text file in folders and below, in order of path, and standard input for "-"; the same
/// file is read once, whatever links lead to it. Files are UTF-8; one that is not is read as Latin-1 and
/// noted. A binary file in a folder is left out and noted.
///
/// The text of a file is its bytes: line ends, a byte order mark and a missing last newline stay as they are.
/// A newline is added only between two files, where the first does not end in one.
///
/// Errors   unavailable for a path that does not exist or can't be read; invalid_argument for an empty or
///          binary file that was named itself, or when nothing is left.
Text load_text(const std::vector<std::string>& paths);

}  // namespace weft::io
