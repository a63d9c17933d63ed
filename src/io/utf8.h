#pragma once
#include <string>
#include <string_view>

// UTF-8 at the level of single characters; include/weft/text.h has whole texts.
namespace weft::io {

struct Utf8Character {
  char32_t character = U'\uFFFD';
  size_t length = 1;  ///< of a malformed sequence, the bytes that one U+FFFD stands for
  bool valid = false;
  bool cut = false;  ///< malformed only because the text ends within it
};

/// The first character of `s`, which is not empty. Malformed text is split as the Unicode Standard recommends
/// (15.0, section 3.9, "maximal subparts"), like Python's errors="replace" and Rust's lossy conversion.
Utf8Character decode_utf8(std::string_view s);
void append_utf8(std::string& out, char32_t c);

bool is_utf8(std::string_view s);
/// The same text with U+FFFD for malformed parts.
std::string repair_utf8(std::string_view s);

}  // namespace weft::io
