#pragma once
#include <string_view>

#include "formats/tokenizer_json.h"
#include "weft/tokenizer.h"

namespace weft::io {

/// A tokenizer whose tokens are the bytes, by their numbers.
formats::TokenizerFile byte_tokenizer();

/// Byte-pair encoding learnt from `text`, with the ids and merges that PyPI's BpeTrainer finds.
Result<formats::TokenizerFile> train(std::string_view text, const BpeTraining& training);

}  // namespace weft::io
