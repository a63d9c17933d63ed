#include "weft/text.h"

namespace weft::io {
namespace {

constexpr char32_t kUnknown = U'\uFFFD';

// One code point at the front of `s`; `length` is 0 when no valid sequence begins there. The table of the
// Unicode Standard (15.0, table 3-7): no overlong form, no surrogate, nothing above U+10FFFF.
char32_t decode_one(std::string_view s, size_t& length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length > s.size()) length = 0;
  if (length <= 1) return length ? first : kUnknown;
  char32_t c = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return length = 0, kUnknown;
    c = c << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
  if (overlong || (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) return length = 0, kUnknown;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes after the first
  constexpr unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(lead[more] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

}  // namespace

std::u32string from_utf8(std::string_view bytes, bool* valid) {
  std::u32string out;
  out.reserve(bytes.size());
  bool all = true;
  while (!bytes.empty()) {
    size_t length = 0;
    out += decode_one(bytes, length);
    all = all && length != 0;
    bytes.remove_prefix(std::max<size_t>(1, length));
  }
  if (valid) *valid = all;
  return out;
}

std::string to_utf8(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(out, c);
  return out;
}

}  // namespace weft::io
