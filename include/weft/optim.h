#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor.h"

// What trains parameters: optimisers, and how their rate goes over a run. All run eagerly and inside
// weft::trace, where their states and the parameters become states of the program.
namespace weft::nn {

/// Changes parameters along their gradients, in place.
///
/// A parameter in f16 or bf16 has a master in f32 among the states: the step is taken there, with the
/// gradient widened, and the parameter is the master rounded. All states are there once the optimiser is
/// built, named `adamw.<parameter>.mean` and so on, so that a trace of step() finds them.
///
/// An optimiser of one's own says which states a parameter has, and how one of them moves:
///
///     class SignDescent : public nn::Optimizer {
///      public:
///       explicit SignDescent(std::vector<Tensor> p) : Optimizer("sign", std::move(p), {}, {}) {}
///
///      private:
///       void update(const Slot& s, const Tensor& gradient, const Tensor& rate) override {
///         assign(s.value, s.value - sign(gradient) * rate);
///       }
///     };
///
/// A tensor that is given twice, as a tied parameter is, takes one step, and counts once in the norm that
/// `clip` bounds. A parameter that is frozen (requires_grad(false)), or that no gradient has reached, stays
/// as it is: step() changes neither it nor its states, not even by weight decay.
///
/// Errors   invalid_argument when a parameter has no name or two have one, and in step() when none has a
///          gradient.
/// Source   of the masters: Micikevicius et al., Mixed precision training (ICLR 2018), section 3.1.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Takes one step of size `rate` along the gradients that backward() left, and clears them.
  ///
  /// Shape    rate [].
  /// DType    rate f64 for parameters in f64, f32 for all others.
  void step(const Tensor& rate);
  /// The same where `when`, a bool of shape [], is true. Elsewhere no parameter moves, and moments go on as
  /// after a gradient of zeros: for a step inside a program, which can't stop at a loss that is not finite.
  void step(const Tensor& rate, const Tensor& when);
  /// Forgets what backward() left: of a step that is not to be taken.
  void clear_gradients();
  /// Masters, moments, velocities: what a checkpoint keeps besides the model.
  std::vector<Tensor> states() const;
  /// Puts other tensors in the place of the states.
  ///
  /// Errors   invalid_argument for a tensor of another type than the state's.
  void replace_states(const std::function<Tensor(const Tensor&)>& with);

 protected:
  /// A state beside a parameter: zeros in its shape, or of rank 0.
  struct StateSpec {
    const char* name;
    bool scalar = false;
  };
  /// All gradients together are scaled down to norm `most`; 0: to none.
  struct Clip {
    double most = 0, epsilon = 1e-6;
  };
  /// What is kept for one parameter.
  struct Slot {
    Tensor parameter;
    Tensor value;  ///< what moves: the master, or the parameter itself
    std::vector<Tensor> states;
    bool has_master() const { return parameter.impl() != value.impl(); }
  };

  Optimizer(std::string_view name, std::vector<Tensor> parameters, std::initializer_list<StateSpec> states,
            Clip clip);
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

 private:
  /// Moves the value of a slot, and its states, in place; `gradient` has the type of the value.
  virtual void update(const Slot& slot, const Tensor& gradient, const Tensor& rate) = 0;

  std::string name_;
  std::vector<Slot> slots_;
  Clip clip_;
};

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 0;  ///< the largest norm that all gradients together may have; 0: any
  double clip_epsilon = 1e-6;
};

/// Keeps two moving averages for every parameter, of its gradient and of the square of that.
///
/// Errors   invalid_argument for a beta outside [0, 1).
/// Source   Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019), algorithm 2.
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWConfig& config = {});

 private:
  void update(const Slot& slot, const Tensor& gradient, const Tensor& rate) override;
  AdamWConfig config_;
};

struct SGDConfig {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clip = 0;  ///< the largest norm that all gradients together may have; 0: any
  double clip_epsilon = 1e-6;
};

/// Gradient descent with momentum: velocity = momentum velocity + gradient, and the step is the velocity.
///
/// Errors   invalid_argument for `nesterov` without a momentum.
/// Source   Sutskever et al., On the importance of initialization and momentum in deep learning (ICML 2013).
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDConfig& config = {});

 private:
  void update(const Slot& slot, const Tensor& gradient, const Tensor& rate) override;
  SGDConfig config_;
};

enum class ScheduleKind : uint8_t { constant, linear, cosine };
std::string_view name(ScheduleKind kind);

/// The rate over a run: up in even steps while it warms up, and down to a part of it along a straight line or
/// half a cosine. How far down follows what is done of the whole run, which a clock may say as well as a
/// count of steps.
///
/// Source   Loshchilov and Hutter, SGDR (ICLR 2017), for the cosine; Goyal et al., Accurate, large minibatch
///          SGD (2017), section 2.2, for warming up.
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 1e-3;
  int64_t warmup = 0;  ///< steps; the first of them is rate / warmup
  double least = 0.1;  ///< part of the rate that is left at the end
  /// Of a step, counted from 0, when a part `done` of the run, from 0 to 1, is over.
  double at(int64_t step, double done) const;
};

}  // namespace weft::nn
