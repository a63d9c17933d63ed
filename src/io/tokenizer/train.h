#pragma once
#include <string_view>

#include "formats/tokenizer_json.h"
#include "weft/tokenizer.h"

namespace weft::io {

/// A tokenizer whose tokens are the bytes, with their values as ids.
formats::TokenizerFile byte_tokenizer();

/// A tokenizer of the characters of `text`; id 0 is U+FFFD.
formats::TokenizerFile character_tokenizer(std::string_view text, const CharacterTraining& training);

/// Byte-pair encoding learnt from `text`, with the ids and merges that PyPI's BpeTrainer finds.
Result<formats::TokenizerFile> train(std::string_view text, const BpeTraining& training);

}  // namespace weft::io
