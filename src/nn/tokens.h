#pragma once
#include <optional>

#include "weft/models.h"
#include "weft/ops.h"

namespace weft::nn {

/// What every language model asks of its tokens.
inline void check_tokens(const char* model, const Tensor& tokens, int64_t context) {
  if (tokens.rank() != 2 || tokens.dim(1).max() > context)
    throw Error(invalid("{}: tokens must be [batch, up to {}], got {}", model, context, text(tokens.type())));
}

/// Where tokens stand: [seq], or, behind what each sequence of a cache has, [batch, seq].
inline Tensor positions_of(const Tensor& tokens, const KVCache* cache) {
  const Tensor own = iota(tokens.dim(1));
  return cache ? reshape(cache->length, {tokens.dim(0), 1}) + own : own;
}

/// What there is of layer i, if there is a cache.
inline std::optional<Past> past_of(const KVCache* cache, size_t i) {
  if (!cache) return {};
  return Past{cache->layers.at(i), cache->length};
}

}  // namespace weft::nn
