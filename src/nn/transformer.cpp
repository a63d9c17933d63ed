#include <algorithm>

#include "weft/models.h"
#include "weft/ops.h"
#include "weft/pieces.h"

namespace weft::nn {

static AttentionConfig completed(AttentionConfig c) {
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.width < 1 || c.heads < 1 || c.kv_heads < 1 || c.heads % c.kv_heads != 0)
    throw Error(invalid("Attention: wants heads a multiple of kv_heads, got {} and {}, width {}", c.heads,
                        c.kv_heads, c.width));
  if (c.head_dim == 0 && c.width % c.heads != 0)
    throw Error(invalid("Attention: {} heads don't divide a width of {}", c.heads, c.width));
  if (c.head_dim == 0) c.head_dim = c.width / c.heads;
  return c;
}

Attention::Attention(const AttentionConfig& config)
    : config_(completed(config)),
      query_(config_.width, config_.heads * config_.head_dim, config_.bias, config_.first),
      key_(config_.width, config_.kv_heads * config_.head_dim, config_.bias, config_.first),
      value_(config_.width, config_.kv_heads * config_.head_dim, config_.bias, config_.first),
      out_(config_.heads * config_.head_dim, config_.width, config_.out_bias, config_.first_out),
      query_norm_(config_.head_dim, config_.norm_epsilon),
      key_norm_(config_.head_dim, config_.norm_epsilon) {}

void Attention::fields(Fields& f) {
  f.child("query", query_), f.child("key", key_), f.child("value", value_), f.child("out", out_);
  if (config_.norm_heads) f.child("query_norm", query_norm_), f.child("key_norm", key_norm_);
}

Tensor Attention::operator()(const Tensor& x, const Rotation* rotation, const Past* past) const {
  const Scope here = scope();
  // Activations keep the heads of a token adjacent, as layers compute them; caches are stored by head, so
  // each head reads its past as one stream.
  Shape tokens = x.shape();
  tokens.pop_back();
  const auto shaped = [&](const Tensor& t, std::initializer_list<Dim> last) {
    Shape s = tokens;
    for (const Dim d : last) s.push_back(d);
    return reshape(t, s);
  };
  Tensor q = shaped(query_(x), {config_.heads, config_.head_dim});
  Tensor k = shaped(key_(x), {config_.kv_heads, config_.head_dim});
  const Tensor v = shaped(value_(x), {config_.kv_heads, config_.head_dim});
  if (config_.norm_heads) q = query_norm_(q), k = key_norm_(k);
  if (rotation) q = rope(q, rotation->cosine, rotation->sine), k = rope(k, rotation->cosine, rotation->sine);
  if (past) {
    ragged_cache_append(past->layer.keys, k, past->length, past->offsets);
    ragged_cache_append(past->layer.values, v, past->length, past->offsets);
  }
  const Tensor y =
      past ? ragged_attention(q, past->layer.keys, past->layer.values, past->length, past->offsets)
           : attention(q, k, v, Tensor(), Tensor(), true, 0, true);
  return out_(shaped(y, {config_.heads * config_.head_dim}));
}

std::unique_ptr<LanguageModel> make_model(const LanguageModelConfig& config) {
  if (const auto* gpt = std::get_if<GPTConfig>(&config)) return std::make_unique<GPT>(*gpt);
  return std::make_unique<Llama>(std::get<LlamaConfig>(config));
}

Tensor activate(const Tensor& x, Activation by) {
  switch (by) {
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu(x, true);
    case Activation::relu: return relu(x);
    case Activation::silu: return silu(x);
  }
  throw Error(invalid("no activation has number {}", static_cast<int>(by)));
}

MLP::MLP(int64_t width, int64_t hidden, Activation by, bool bias, Initial first, Initial first_out)
    : up_(width, hidden, bias, first), down_(hidden, width, bias, first_out), by_(by) {}
void MLP::fields(Fields& f) { f.child("up", up_), f.child("down", down_); }
Tensor MLP::operator()(const Tensor& x) const {
  const Scope here = scope();
  return down_(activate(up_(x), by_));
}

GatedMLP::GatedMLP(int64_t width, int64_t hidden, Activation by, Initial first, Initial first_out)
    : gate_(width, hidden, false, first),
      up_(width, hidden, false, first),
      down_(hidden, width, false, first_out),
      by_(by) {}
void GatedMLP::fields(Fields& f) { f.child("gate", gate_), f.child("up", up_), f.child("down", down_); }
Tensor GatedMLP::operator()(const Tensor& x) const {
  const Scope here = scope();
  return down_(activate(gate_(x), by_) * up_(x));
}

KVCache LanguageModel::make_cache(int64_t batch, int64_t capacity) const {
  if (batch < 1 || capacity < 1 || capacity > context())
    throw Error(invalid("a cache wants a batch of at least 1 and a capacity of 1 to {}, got {} and {}",
                        context(), batch, capacity));
  const CacheShape s = cache_shape();
  const int64_t shape[] = {batch, s.kv_heads, capacity, s.head_dim}, rows[] = {batch}, ends[] = {batch + 1};
  const auto zeros = [&](const std::string& name, DType dtype, std::span<const int64_t> sizes) {
    return tensor_from_pieces(
               [](int64_t, std::span<std::byte> piece) { std::ranges::fill(piece, std::byte{0}); }, sizes,
               dtype)
        .named(name);
  };
  KVCache cache{.layers = {},
                .length = zeros("cache.length", DType::i32, rows),
                .offsets = zeros("cache.offsets", DType::i32, ends)};
  for (int64_t i = 0; i < s.layers; ++i)
    cache.layers.push_back({zeros(fmt::format("cache.{}.keys", i), s.dtype, shape),
                            zeros(fmt::format("cache.{}.values", i), s.dtype, shape)});
  return cache;
}

}  // namespace weft::nn
