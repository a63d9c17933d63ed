#include <cmath>

#include "weft/nn.h"
#include "weft/ops.h"

namespace weft::nn {

static double fan_in_bound(int64_t in) {
  return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(in, 1)));
}

// A size of a layer, which is known to be one before anything is built.
static int64_t size_of(const char* layer, const char* what, int64_t n) {
  if (n < 0) throw Error(invalid("{}: {} must not be negative, got {}", layer, what, n));
  return n;
}

Linear::Linear(int64_t in, int64_t out, bool bias)
    : in_(size_of("Linear", "inputs", in)),
      out_(size_of("Linear", "outputs", out)),
      has_bias_(bias),
      first_weight_(Initial::uniform(fan_in_bound(in))),
      first_bias_(first_weight_) {}
Linear::Linear(int64_t in, int64_t out, bool bias, Initial first)
    : in_(size_of("Linear", "inputs", in)),
      out_(size_of("Linear", "outputs", out)),
      has_bias_(bias),
      first_weight_(first) {}

void Linear::fields(Fields& f) {
  f.parameter("weight", weight, {out_, in_}, first_weight_);
  if (has_bias_) f.parameter("bias", bias, {out_}, first_bias_);
}
Tensor Linear::operator()(const Tensor& x) const {
  const Scope here = scope();
  return linear(x, built(weight, "Linear.weight"), bias);
}

Embedding::Embedding(int64_t count, int64_t dim, Initial first)
    : count_(size_of("Embedding", "count", count)), dim_(size_of("Embedding", "width", dim)), first_(first) {}
void Embedding::fields(Fields& f) { f.parameter("weight", weight, {count_, dim_}, first_); }
Tensor Embedding::operator()(const Tensor& ids) const {
  const Scope here = scope();
  return embedding(built(weight, "Embedding.weight"), ids);
}

LayerNorm::LayerNorm(int64_t dim, double eps, bool bias) : epsilon(eps), dim_(dim), has_bias_(bias) {}
void LayerNorm::fields(Fields& f) {
  f.parameter("weight", weight, {dim_}, Initial::constant(1));
  if (has_bias_) f.parameter("bias", bias, {dim_});
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  const Scope here = scope();
  return layer_norm(x, built(weight, "LayerNorm.weight"), bias, 1, epsilon);
}

RMSNorm::RMSNorm(int64_t dim, double eps) : epsilon(eps), dim_(dim) {}
void RMSNorm::fields(Fields& f) { f.parameter("weight", weight, {dim_}, Initial::constant(1)); }
Tensor RMSNorm::operator()(const Tensor& x) const {
  const Scope here = scope();
  return rms_norm(x, built(weight, "RMSNorm.weight"), epsilon);
}

Dropout::Dropout(double probability) : p(probability) {
  if (!(p >= 0 && p < 1)) throw Error(invalid("Dropout: p must be in [0, 1), got {}", p));
}
void Dropout::fields(Fields& f) {
  if (p > 0) f.random("state", state);
}
Tensor Dropout::operator()(const Tensor& x) const {
  if (!training || p == 0) return x;
  const Scope here = scope();
  return dropout(x, built(state, "Dropout.state"), p);
}

Tensor token_loss(const Tensor& scores, const Tensor& targets) {
  // A mean of losses needs more precision than a half.
  const auto loss = [](const Tensor& logits, const Tensor& classes) {
    return cross_entropy(logits, classes, Tensor(), -100, 0, true);
  };
  if (scores.rank() == 2) return loss(scores, targets);
  const Dim rows = element_count(targets.shape());
  return loss(reshape(scores, {rows, scores.dim(-1)}), reshape(targets, {rows}));
}

void check_parts(std::span<const Example> parts) {
  if (parts.empty()) throw Error(invalid("train_step: wants at least one part of a batch, got none"));
  for (const Example& p : parts)
    if (!(p.input.type() == parts[0].input.type()) || !(p.target.type() == parts[0].target.type()))
      throw Error(invalid("train_step: parts of a batch must be alike, got {} with {}, and {} with {}",
                          text(parts[0].input.type()), text(parts[0].target.type()), text(p.input.type()),
                          text(p.target.type())));
}

}  // namespace weft::nn
