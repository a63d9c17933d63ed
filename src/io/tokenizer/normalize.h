#pragma once
#include <string>
#include <vector>

#include "io/tokenizer/pattern.h"

namespace weft::io {

/// The normalizers of a tokenizer, in order.
class Normalizer {
 public:
  static Result<Normalizer> make(const std::vector<formats::TokenNormalizer>& steps);
  bool empty() const { return steps_.empty(); }
  /// `text` is valid UTF-8.
  std::string operator()(std::string_view text) const;

 private:
  struct Step {
    formats::TokenNormalizer::Kind kind;
    Pattern pattern;
    std::string content;
    formats::BertNormalizer bert;
  };
  std::vector<Step> steps_;
};

/// `text` in one of Unicode's four normalization forms.
std::string normal_form(std::string_view text, formats::TokenNormalizer::Kind form);

/// The character at the front of valid UTF-8; `length` is its bytes.
char32_t first_character(std::string_view text, size_t& length);
bool is_space(char32_t c);      ///< White_Space
bool is_word_part(char32_t c);  ///< letters, marks, digits, connectors and joiners: \w of Unicode's annex 18

}  // namespace weft::io
