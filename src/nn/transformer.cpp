#include "weft/models.h"
#include "weft/ops.h"

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

Tensor Attention::heads(const Tensor& x, int64_t n) const {
  return reshape(x, {x.dim(0), x.dim(1), n, config_.head_dim});
}

Tensor Attention::operator()(const Tensor& x, const Rotation* rotation) const {
  const Scope here = scope();
  Tensor q = heads(query_(x), config_.heads), k = heads(key_(x), config_.kv_heads);
  const Tensor v = heads(value_(x), config_.kv_heads);
  if (config_.norm_heads) q = query_norm_(q), k = key_norm_(k);
  if (rotation) {
    const auto of_all_heads = [](const Tensor& t) { return reshape(t, {t.dim(0), 1, t.dim(1)}); };
    const Tensor cosine = of_all_heads(rotation->cosine), sine = of_all_heads(rotation->sine);
    q = rope(q, cosine, sine), k = rope(k, cosine, sine);
  }
  const Tensor y = attention(q, k, v, Tensor(), Tensor(), true, 0, true);
  return out_(reshape(y, {x.dim(0), x.dim(1), config_.heads * config_.head_dim}));
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

}  // namespace weft::nn
