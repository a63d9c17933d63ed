#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor.h"

// Model pieces on the public eager API. A layer makes its tensors on the default backend when it is built,
// and its forward is plain ops: the same code runs eagerly and inside weft::trace, where a batch may be a
// symbol.
namespace weft::nn {

/// Gives a tensor to put in the place of another, by its name: how weights are loaded and converted.
using Replacement = std::function<Tensor(const Tensor&)>;

/// Random numbers for first values: number i of a seed never depends on what was drawn before, on any
/// machine.
class Initializer {
 public:
  explicit Initializer(uint64_t seed) : seed_(seed) {}
  /// Values drawn evenly from [-bound, bound).
  Tensor uniform(std::vector<int64_t> shape, double bound, DType dtype);
  /// A fresh u64[2] state (key, counter) for random ops.
  Tensor random_state();

 private:
  uint64_t seed_;
  uint64_t drawn_ = 0;
};

/// y = x Wᵀ + b.
///
/// Shape    x [..., in] -> [..., out]; weight [out, in], bias [out], named `<name>.weight` and `<name>.bias`.
/// DType    floats.
/// Numerics the bias starts at zero, weights even in +-gain * sqrt(3 / in): gain sqrt(2) keeps the variance
/// through relu. Source   He et al., Delving deep into rectifiers (ICCV 2015), section 2.2.
class Linear {
 public:
  Linear(std::string name, int64_t in, int64_t out, double gain, Initializer& init, DType dtype = DType::f32);
  Tensor operator()(const Tensor& x) const;
  std::vector<Tensor> parameters() const { return {weight, bias}; }

  Tensor weight, bias;

 private:
  std::string name_;
};

/// A learned row for each of `count` numbers.
///
/// Shape    ids [...] -> [..., dim]; table [count, dim], named `<name>.table`.
/// DType    ids i32 or i64.
/// Numerics rows start even with variance 1.
/// Errors   a device error for an id outside [0, count).
/// Source   Bengio et al., A neural probabilistic language model (JMLR 2003).
class Embedding {
 public:
  Embedding(std::string name, int64_t count, int64_t dim, Initializer& init, DType dtype = DType::f32);
  Tensor operator()(const Tensor& ids) const;
  std::vector<Tensor> parameters() const { return {table}; }

  Tensor table;

 private:
  std::string name_;
};

/// Zeroes elements at random while `training` is on, and changes nothing otherwise.
///
/// Shape    same as x; state u64[2], named `<name>.state`, advanced by every call in training.
/// Source   Srivastava et al., Dropout (JMLR 2014).
class Dropout {
 public:
  Dropout(std::string name, double p, Initializer& init);
  Tensor operator()(const Tensor& x, bool training) const;
  std::vector<Tensor> states() const { return {state}; }

  Tensor state;
  double p = 0;

 private:
  std::string name_;
};

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
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
  void replace_states(const Replacement& with);

 private:
  struct Slot {
    Tensor parameter, mean, square, mean_weight, square_weight;
  };
  std::vector<Slot> slots_;
  AdamWConfig config_;
};

struct CharModelConfig {
  int64_t vocabulary = 0;
  int64_t context = 16;
  int64_t embed = 16;
  int64_t hidden = 128;
  double dropout = 0.05;
  friend bool operator==(const CharModelConfig&, const CharModelConfig&) = default;
};

/// A character language model: the last `context` characters, embedded side by side, through two hidden
/// layers, to a score for each character that may come next.
///
/// Shape    tokens [batch, context] -> logits [batch, vocabulary]; batch may be a symbol.
/// DType    tokens i32 or i64, logits the model's.
/// Errors   invalid_argument for sizes below 1, dropout outside [0, 1), or tokens of another shape.
/// Source   Bengio et al., A neural probabilistic language model (JMLR 2003), with relu and a second hidden
/// layer.
class CharModel {
 public:
  CharModel(const CharModelConfig& config, uint64_t seed, DType dtype = DType::f32);

  Tensor operator()(const Tensor& tokens) const;
  std::vector<Tensor> parameters() const;
  /// Random states of the dropout layers.
  std::vector<Tensor> states() const;
  const CharModelConfig& config() const { return config_; }
  /// Puts other tensors in the place of parameters and states. An optimiser that was made before keeps the
  /// old ones.
  void replace(const Replacement& with);
  /// The same weights in another dtype, on the default backend; the copy is not in training.
  CharModel copy(DType dtype) const;

  bool training = false;  ///< is dropout on?

 private:
  Tensor hidden(std::string_view name, const Linear& layer, const Dropout& drop, const Tensor& x) const;
  std::vector<Tensor*> parameter_slots();

  CharModelConfig config_;
  Initializer init_;
  Embedding embedding_;
  Linear hidden1_, hidden2_, output_;
  Dropout drop1_, drop2_;
};

/// One step of training: loss, gradients, update. Runs eagerly and inside weft::trace; `model.training` says
/// whether dropout is on.
///
/// Shape    tokens [batch, context], targets [batch], rate []; the loss has rank 0.
/// DType    tokens and targets i32 or i64; rate and loss as the model.
[[nodiscard]] Tensor train_step(const CharModel& model, AdamW& optimizer, const Tensor& tokens,
                                const Tensor& targets, const Tensor& rate);

}  // namespace weft::nn
