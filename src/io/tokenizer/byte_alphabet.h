#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::io {

/// GPT-2's alphabet of bytes: a printable character for each of them, so that a vocabulary of bytes can be
/// written as text.
class ByteAlphabet {
 public:
  static const ByteAlphabet& get();

  /// The character of a byte, in UTF-8.
  const std::string& character(unsigned char byte) const { return characters_[byte]; }
  /// Bytes in order of their characters' code points, which is how vocabularies number them.
  const std::array<unsigned char, 256>& in_order() const { return in_order_; }
  void append(std::string_view bytes, std::string& out) const;
  /// Appends the bytes that `text` spells; appends `text` itself if one of its characters stands for no byte.
  void append_bytes(std::string_view text, std::string& out) const;

 private:
  ByteAlphabet();
  std::array<std::string, 256> characters_;
  std::array<unsigned char, 256> in_order_{};
  std::array<int16_t, 512> bytes_{};  // by code point; -1 for none
};

}  // namespace weft::io
