#pragma once
#include "weft/attr.h"

namespace weft {

/// Texts of dimensions and types in files. They may come from anyone, while Dim's arithmetic trusts its
/// caller: it does not bound the size of an expanded product. So each text is measured before it is parsed.
Result<Dim> read_dim(std::string_view text, std::span<const Symbol> symbols);
/// Reads "[4, batch*16]".
Result<Shape> read_shape(std::string_view text, std::span<const Symbol> symbols);
/// Reads "f32[4, batch*16]".
Result<TensorType> read_type(std::string_view text, std::span<const Symbol> symbols);

/// Names that dimensions can spell, each once, with 0 <= min <= max. Needed before any text is read with
/// them.
Status check_symbols(std::span<const Symbol> symbols);

}  // namespace weft
