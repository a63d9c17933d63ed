#include "io/tokenizer/byte_alphabet.h"

#include <algorithm>
#include <numeric>

#include "io/utf8.h"

namespace weft::io {

const ByteAlphabet& ByteAlphabet::get() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

// Bytes that are printable in Latin-1 stand for themselves; the others are numbered from U+0100.
ByteAlphabet::ByteAlphabet() {
  std::array<char32_t, 256> points{};
  char32_t next = 256;
  bytes_.fill(-1);
  for (unsigned b = 0; b < 256; ++b) {
    const bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
    points[b] = printable ? b : next++;
    bytes_[points[b]] = static_cast<int16_t>(b);
    append_utf8(characters_[b], points[b]);
  }
  std::iota(in_order_.begin(), in_order_.end(), 0);
  std::sort(in_order_.begin(), in_order_.end(), [&](auto a, auto b) { return points[a] < points[b]; });
}

void ByteAlphabet::append(std::string_view bytes, std::string& out) const {
  for (const char b : bytes) out += characters_[static_cast<unsigned char>(b)];
}

void ByteAlphabet::append_bytes(std::string_view text, std::string& out) const {
  const size_t had = out.size();
  for (auto rest = text; !rest.empty();) {
    const auto c = decode_utf8(rest);
    if (c.character >= bytes_.size() || bytes_[c.character] < 0) {
      out.resize(had);
      out += text;
      return;
    }
    out += static_cast<char>(bytes_[c.character]);
    rest.remove_prefix(c.length);
  }
}

}  // namespace weft::io
