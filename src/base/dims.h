#pragma once
#include "weft/attr.h"

namespace weft {

/// Texts of dimensions and types in files, which are untrusted. Dim's arithmetic does not bound the size of
/// an expanded product, so each text is measured before it is parsed.
Result<Dim> read_dim(std::string_view text, std::span<const Symbol> symbols);
/// Reads "[4, batch*16]".
Result<Shape> read_shape(std::string_view text, std::span<const Symbol> symbols);
/// Reads "f32[4, batch*16]".
Result<TensorType> read_type(std::string_view text, std::span<const Symbol> symbols);

/// Checks symbols: valid names, each once, with 0 <= min <= max. Call before reading text with them.
Status check_symbols(std::span<const Symbol> symbols);

}  // namespace weft
