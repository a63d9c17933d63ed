#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/module.h"
#include "weft/optim.h"

// Layers, losses and a first model on the public eager API. Their tensors are made by build(), on the
// default backend; the forward is plain ops: the same code runs eagerly and inside weft::trace, where a batch
// may be a symbol. All parameters of a model have one float dtype.
namespace weft::nn {

/// y = x Wᵀ + b.
///
/// Shape    x [..., in] -> [..., out]; weight [out, in], bias [out] or none.
/// Numerics both begin even in +-1 / sqrt(in); where `first` says how the weight does, the bias is zero.
/// Source   LeCun et al., Efficient BackProp (1998), section 4.6; the bounds are PyTorch's.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  Linear(int64_t in, int64_t out, bool bias, Initial first);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

  Tensor weight, bias;

 private:
  int64_t in_, out_;
  bool has_bias_;
  Initial first_weight_, first_bias_;
};

/// A learned row for each of `count` numbers.
///
/// Shape    ids [...] -> [..., dim]; weight [count, dim].
/// DType    ids i32 or i64.
/// Numerics rows begin normal with variance 1, unless `first` says otherwise.
/// Errors   a device error for an id outside [0, count).
/// Source   Bengio et al., A neural probabilistic language model (JMLR 2003).
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t dim, Initial first = Initial::normal(1));
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& ids) const;

  Tensor weight;

 private:
  int64_t count_, dim_;
  Initial first_;
};

/// Mean 0 and variance 1 for each row of the last axis, then a learned scale and shift.
///
/// Shape    same as x [..., dim]; weight and bias [dim], or no bias.
/// Source   Ba et al., Layer normalization (2016).
class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t dim, double epsilon = 1e-5, bool bias = true);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

  Tensor weight, bias;
  double epsilon;

 private:
  int64_t dim_;
  bool has_bias_;
};

/// Root mean square 1 for each row of the last axis, then a learned scale.
///
/// Shape    same as x [..., dim]; weight [dim].
/// Source   Zhang and Sennrich, Root mean square layer normalization (NeurIPS 2019).
class RMSNorm : public Module {
 public:
  explicit RMSNorm(int64_t dim, double epsilon = 1e-6);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

  Tensor weight;
  double epsilon;

 private:
  int64_t dim_;
};

/// Zeroes elements at random while `training` is on, and changes nothing otherwise.
///
/// Shape    same as x; state u64[2], advanced by every call in training; none where p is 0.
/// Errors   invalid_argument unless 0 <= p < 1.
/// Source   Srivastava et al., Dropout (JMLR 2014).
class Dropout : public Module {
 public:
  explicit Dropout(double p);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

  Tensor state;
  double p;
};

/// How well scores foresee the tokens that came: the mean negative log-likelihood.
///
/// Shape    logits [..., vocabulary], targets [...]; the loss has rank 0.
/// DType    targets i32 or i64; the loss as the logits, f32 for f16 and bf16.
[[nodiscard]] Tensor token_loss(const Tensor& logits, const Tensor& targets);

/// What a model is given, and what it should have said.
struct Example {
  Tensor input, target;
};

/// What accumulating asks of them; see accumulate_gradients().
void check_parts(std::span<const Example> parts);

/// Adds the gradient of the mean loss of a batch to the parameters, one part of the batch after the other,
/// for what does not fit in memory at once. Returns that loss, which is the loss of the whole batch.
///
/// Shape    input as the model wants it, target as its logits without their last axis, loss [].
/// DType    target i32 or i64; loss as token_loss().
/// Errors   invalid_argument for no parts, and for parts of different shapes, whose mean would be another
/// one.
template <class M>
[[nodiscard]] Tensor accumulate_gradients(const M& model, std::span<const Example> parts) {
  check_parts(parts);
  Tensor mean;
  for (const Example& part : parts) {
    Tensor loss = token_loss(model(part.input), part.target);
    if (parts.size() > 1) loss = loss / static_cast<double>(parts.size());
    loss.backward();
    mean = mean ? mean + loss.detach() : loss.detach();
  }
  return mean;
}

/// One step of training: loss, gradients, update. Runs eagerly and inside weft::trace; set_training() says
/// whether dropout is on.
///
/// Shape    parts as accumulate_gradients(); rate [], loss [].
/// DType    rate as Optimizer::step().
template <class M>
[[nodiscard]] Tensor train_step(const M& model, Optimizer& optimizer, std::span<const Example> parts,
                                const Tensor& rate) {
  const Tensor loss = accumulate_gradients(model, parts);
  optimizer.step(rate);
  return loss;
}
/// The same from a batch in one part.
template <class M>
[[nodiscard]] Tensor train_step(const M& model, Optimizer& optimizer, const Example& batch,
                                const Tensor& rate) {
  return train_step(model, optimizer, std::span(&batch, 1), rate);
}

}  // namespace weft::nn
