#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/module.h"

// Layers, optimisers and a first model on the public eager API. Their tensors are made by build(), on the
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

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 0;  ///< the largest norm that all gradients together may have; 0: any
  double clip_epsilon = 1e-6;
};

/// The AdamW optimiser: keeps two moments for every parameter, and updates all in place.
///
/// All its states exist once it is built, named `adamw.<parameter>.mean` and so on, so that a trace of step()
/// finds them.
///
/// Errors   invalid_argument when a parameter has no name, or no gradient in step().
/// Source   Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019).
class AdamW {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWConfig& config = {});
  /// Takes one step of size `rate` (rank 0) along the gradients that backward() left, and clears them.
  void step(const Tensor& rate);
  /// Moments and their weights.
  std::vector<Tensor> states() const;
  /// Puts other tensors in the place of the states.
  void replace_states(const std::function<Tensor(const Tensor&)>& with);

 private:
  struct Slot {
    Tensor parameter, mean, square, mean_weight, square_weight;
  };
  std::vector<Slot> slots_;
  AdamWConfig config_;
};

/// How well scores foresee the tokens that came: the mean negative log-likelihood.
///
/// Shape    logits [..., vocabulary], targets [...]; the loss has rank 0.
/// DType    targets i32 or i64; the loss as the logits.
[[nodiscard]] Tensor token_loss(const Tensor& logits, const Tensor& targets);

/// One step of training: loss, gradients, update. Runs eagerly and inside weft::trace; set_training() says
/// whether dropout is on.
///
/// Shape    tokens as the model wants them, targets as its logits without their last axis, rate [], loss [].
/// DType    tokens and targets i32 or i64; rate and loss as the model.
template <class M>
[[nodiscard]] Tensor train_step(const M& model, AdamW& optimizer, const Tensor& tokens, const Tensor& targets,
                                const Tensor& rate) {
  const Tensor loss = token_loss(model(tokens), targets);
  loss.backward();
  optimizer.step(rate);
  return loss.detach();
}

}  // namespace weft::nn
