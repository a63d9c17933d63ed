#include <cmath>

#include "nn/tokens.h"
#include "weft/models.h"
#include "weft/ops.h"
#include "weft/recompute.h"

namespace weft::nn {
namespace {

const Initial kFirst = Initial::normal(0.02);
// Layers that add to the residual have smaller initial weights, so its variance does not grow with depth.
Initial first_residual(int64_t layers) {
  return Initial::normal(0.02 / std::sqrt(2.0 * static_cast<double>(layers)));
}

const GPTConfig& checked(const GPTConfig& c) {
  if (c.vocabulary < 1 || c.context < 1 || c.layers < 1)
    throw Error(invalid("GPT: sizes must be at least 1, got vocabulary {}, context {}, layers {}",
                        c.vocabulary, c.context, c.layers));
  return c;
}

}  // namespace

GPT::Block::Block(const GPTConfig& c)
    : norm1(c.width, c.epsilon),
      norm2(c.width, c.epsilon),
      attention({.width = c.width,
                 .heads = c.heads,
                 .bias = true,
                 .out_bias = true,
                 .first = kFirst,
                 .first_out = first_residual(c.layers)}),
      mlp(c.width, c.hidden ? c.hidden : 4 * c.width, c.activation, true, kFirst, first_residual(c.layers)),
      drop1(c.dropout),
      drop2(c.dropout) {}

void GPT::Block::fields(Fields& f) {
  f.child("norm1", norm1), f.child("attention", attention), f.child("dropout1", drop1);
  f.child("norm2", norm2), f.child("mlp", mlp), f.child("dropout2", drop2);
}

Tensor GPT::Block::operator()(const Tensor& x, const Past* past) const {
  const Scope here = scope();
  const Tensor y = x + drop1(attention(norm1(x), nullptr, past));
  return y + drop2(mlp(norm2(y)));
}

GPT::GPT(const GPTConfig& config)
    : config_(checked(config)),
      tokens_(config.vocabulary, config.width, kFirst),
      positions_(config.context, config.width, kFirst),
      drop_(config.dropout),
      blocks_(static_cast<size_t>(config.layers), Block(config)),
      norm_(config.width, config.epsilon) {}

void GPT::fields(Fields& f) {
  f.child("tokens", tokens_), f.child("positions", positions_), f.child("dropout", drop_);
  f.children("blocks", blocks_);
  f.child("norm", norm_);
}

Tensor GPT::features(const Tensor& tokens, const KVCache* cache) const {
  check_tokens("GPT", tokens, config_.context, cache);
  Tensor x = drop_(tokens_(tokens) + positions_(positions_of(tokens, cache)));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (const auto past = past_of(cache, i))
      x = block(x, &*past);
    else
      x = config_.recompute ? recompute(block, x) : block(x);
  }
  return x;
}

Tensor GPT::scores(const Tensor& features) const { return linear(norm_(features), tokens_.weight); }

LanguageModel::CacheShape GPT::cache_shape() const {
  return {config_.layers, config_.heads, config_.width / config_.heads,
          built(tokens_.weight, "tokens.weight").dtype()};
}

}  // namespace weft::nn
