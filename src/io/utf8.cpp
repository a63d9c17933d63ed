#include "io/utf8.h"

#include <cstdint>
#include <cstring>

#include "weft/text.h"

namespace weft::io {

Utf8Character decode_utf8(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true, false};
  const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0) return {};
  // Table 3-7: a second byte that makes no overlong form, no surrogate, nothing above U+10FFFF.
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  char32_t c = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xBF) {
    if (i >= s.size()) return {U'\uFFFD', i, false, true};
    if (byte(i) < low || byte(i) > high) return {U'\uFFFD', i, false, false};
    c = c << 6 | (byte(i) & 0x3F);
  }
  return {c, length, true, false};
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

bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    uint64_t eight = 0;
    if (s.size() >= 8 && (std::memcpy(&eight, s.data(), 8), (eight & 0x8080808080808080ull) == 0)) {
      s.remove_prefix(8);
      continue;
    }
    const auto c = decode_utf8(s);
    if (!c.valid) return false;
    s.remove_prefix(c.length);
  }
  return true;
}

std::string repair_utf8(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const auto c = decode_utf8(s);
    append_utf8(out, c.character);
    s.remove_prefix(c.length);
  }
  return out;
}

std::u32string from_utf8(std::string_view bytes, bool* valid) {
  std::u32string out;
  out.reserve(bytes.size());
  bool all = true;
  while (!bytes.empty()) {
    const auto c = decode_utf8(bytes);
    out += c.character;
    all = all && c.valid;
    bytes.remove_prefix(c.length);
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
