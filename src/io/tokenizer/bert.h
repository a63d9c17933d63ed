#pragma once
#include <string>
#include <string_view>

#include "formats/tokenizer_json.h"

// The normalizer and the pre-tokenizer of BERT, with the classes of characters that PyPI's `tokenizers` has
// for them: those of Unicode 8, whatever the Unicode version of its other parts.
namespace weft::io {

/// `text` is valid UTF-8.
std::string bert_normalized(std::string_view text, const formats::BertNormalizer& rules);

/// A regular expression for one character of punctuation.
const std::string& bert_punctuation();

}  // namespace weft::io
