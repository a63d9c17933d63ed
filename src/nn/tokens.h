#pragma once
#include <optional>

#include "weft/models.h"
#include "weft/ops.h"

namespace weft::nn {

/// Checks that every language model makes of its tokens.
inline void check_tokens(const char* model, const Tensor& tokens, int64_t context, const KVCache* cache) {
  if (cache && tokens.rank() != 1)
    throw Error(invalid("{}: with a cache, tokens must be [tokens], got {}", model, text(tokens.type())));
  if (cache) return;
  if (tokens.rank() != 2 || tokens.dim(1).max() > context)
    throw Error(invalid("{}: tokens must be [batch, up to {}], got {}", model, context, text(tokens.type())));
}

/// Positions of tokens: [seq], or with a cache, continuing each sequence, [tokens].
inline Tensor positions_of(const Tensor& tokens, const KVCache* cache) {
  if (!cache) return iota(tokens.dim(1));
  const Dim batch = cache->length.dim(0), n = tokens.dim(0);
  const Tensor own = iota(n), before = cache->length - slice(cache->offsets, 0, 0, batch);
  if (batch == Dim(1)) return own + before;
  // A token's sequence is the last one that begins at or before it.
  const Tensor begins = reshape(slice(cache->offsets, 0, 1, batch), {1, batch - Dim(1)});
  const Tensor begun = cast(greater_equal(reshape(own, {n, 1}), begins), DType::i32);
  return own + gather(before, sum(begun, {1}));
}

/// The cache of layer i, if any.
inline std::optional<Past> past_of(const KVCache* cache, size_t i) {
  if (!cache) return {};
  return Past{cache->layers.at(i), cache->length, cache->offsets};
}

}  // namespace weft::nn
