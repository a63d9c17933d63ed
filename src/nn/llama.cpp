#include <algorithm>
#include <cmath>
#include <numbers>

#include "nn/tokens.h"
#include "weft/models.h"
#include "weft/ops.h"
#include "weft/recompute.h"

namespace weft::nn {
namespace {

const Initial kNormal = Initial::normal(0.02);

int64_t head_dim(const LlamaConfig& c) {
  return c.head_dim ? c.head_dim : c.width / std::max<int64_t>(c.heads, 1);
}

const LlamaConfig& checked(const LlamaConfig& c) {
  if (c.vocabulary < 1 || c.context < 1 || c.layers < 1 || c.hidden < 1)
    throw Error(
        invalid("Llama: sizes must be at least 1, got vocabulary {}, context {}, layers {}, hidden {}",
                c.vocabulary, c.context, c.layers, c.hidden));
  if (head_dim(c) % 2 != 0)
    throw Error(
        invalid("Llama: head_dim must be even, its numbers are turned in pairs; got {}", head_dim(c)));
  return c;
}

// Llama 3's rule: short wavelengths are kept, long ones scaled, and those between interpolated.
double scaled(const RopeScaling& s, double frequency) {
  if (s.kind == RopeScaling::Kind::none) return frequency;
  if (s.kind == RopeScaling::Kind::linear) return frequency / s.factor;
  const double turns = static_cast<double>(s.trained_context) * frequency / (2 * std::numbers::pi);
  if (turns < s.low_frequency) return frequency / s.factor;
  if (turns > s.high_frequency) return frequency;
  const double mix = (turns - s.low_frequency) / (s.high_frequency - s.low_frequency);
  return (1 - mix) * frequency / s.factor + mix * frequency;
}

Rotation rotation_of(const LlamaConfig& c, const Tensor& tokens, const KVCache* cache, DType dtype) {
  const int64_t pairs[] = {head_dim(c) / 2};
  std::vector<double> all;
  for (int64_t i = 0; i < pairs[0]; ++i)
    all.push_back(scaled(c.rope_scaling,
                         std::pow(c.rope_base, -static_cast<double>(i) / static_cast<double>(pairs[0]))));
  // Angles are computed in f32 or better, whatever the model's dtype.
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor frequencies = Tensor::of(std::span<const double>(all), pairs, wide).named("frequencies");
  const Tensor at = positions_of(tokens, cache);
  const Tensor positions = reshape(cast(at, wide), {at.dim(0), 1, 1});  // the heads of a token share them
  const Tensor angles = positions * frequencies;
  return {cast(cos(angles), dtype), cast(sin(angles), dtype)};
}

}  // namespace

Llama::Block::Block(const LlamaConfig& c)
    : norm1(c.width, c.epsilon),
      norm2(c.width, c.epsilon),
      attention({.width = c.width,
                 .heads = c.heads,
                 .kv_heads = c.kv_heads,
                 .head_dim = c.head_dim,
                 .bias = c.qkv_bias,
                 .norm_heads = c.norm_heads,
                 .norm_epsilon = c.epsilon,
                 .first = kNormal,
                 .first_out = kNormal}),
      mlp(c.width, c.hidden, c.activation, kNormal, kNormal) {}

void Llama::Block::fields(Fields& f) {
  f.child("norm1", norm1), f.child("attention", attention), f.child("norm2", norm2), f.child("mlp", mlp);
}

Tensor Llama::Block::operator()(const Tensor& x, const Rotation& rotation, const Past* past) const {
  const Scope here = scope();
  const Tensor y = x + attention(norm1(x), &rotation, past);
  return y + mlp(norm2(y));
}

Llama::Llama(const LlamaConfig& config)
    : config_(checked(config)),
      tokens_(config.vocabulary, config.width, kNormal),
      blocks_(static_cast<size_t>(config.layers), Block(config)),
      norm_(config.width, config.epsilon),
      scores_(config.width, config.vocabulary, false, kNormal) {}

void Llama::fields(Fields& f) {
  f.child("tokens", tokens_);
  f.children("blocks", blocks_);
  f.child("norm", norm_);
  if (!config_.tied_embedding) f.child("scores", scores_);
}

Tensor Llama::features(const Tensor& tokens, const KVCache* cache) const {
  check_tokens("Llama", tokens, config_.context, cache);
  const Rotation rotation =
      rotation_of(config_, tokens, cache, built(tokens_.weight, "tokens.weight").dtype());
  Tensor x = tokens_(tokens);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (const auto past = past_of(cache, i))
      x = block(x, rotation, &*past);
    else if (config_.recompute)
      x = recompute([block, rotation](const Tensor& in) { return block(in, rotation); }, x);
    else
      x = block(x, rotation);
  }
  return x;
}

Tensor Llama::scores(const Tensor& features) const {
  const Tensor x = norm_(features);
  return config_.tied_embedding ? linear(x, tokens_.weight) : scores_(x);
}

LanguageModel::CacheShape Llama::cache_shape() const {
  return {config_.layers, config_.kv_heads ? config_.kv_heads : config_.heads, head_dim(config_),
          built(tokens_.weight, "tokens.weight").dtype()};
}

}  // namespace weft::nn
