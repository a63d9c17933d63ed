#pragma once
#include "weft/tensor.h"

namespace weft::nn {

/// What every language model asks of its tokens.
inline void check_tokens(const char* model, const Tensor& tokens, int64_t context) {
  if (tokens.rank() != 2 || tokens.dim(1).max() > context)
    throw Error(invalid("{}: tokens must be [batch, up to {}], got {}", model, context, text(tokens.type())));
}

}  // namespace weft::nn
