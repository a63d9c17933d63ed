#pragma once
#include "formats/json_field.h"
#include "formats/tokenizer_json.h"

namespace weft::formats {

/// The field `model` of a `tokenizer.json`.
Result<std::variant<BpeModel, WordPieceModel>> read_token_model(const Field& f);

}  // namespace weft::formats
