#pragma once
#include "backends/native/row_launch.h"

// Shared by cross_entropy, its gradient and both in one: logits [n, classes] and a class for each row,
// without class weights.
namespace weft::native {

/// Accepts `operands` operands, logits and classes first, no class weights, and so many results.
inline backend::Support accepts_classes(const backend::OpCall& c, int64_t operands, int64_t results = 1) {
  using backend::Support;
  if ((c.n_inputs() != operands && c.n_inputs() != operands + 1) || c.n_outputs() != results)
    return Support::no("wants {} inputs, perhaps a weight, and {} outputs; got {} and {}", operands, results,
                       c.n_inputs(), c.n_outputs());
  for (int64_t i = 0; i < operands; ++i)
    if (!c.input(i).has()) return Support::no("input {} is absent", i);
  if (c.input(operands).has()) return Support::no("classes must have no weight");
  const backend::TypeView x = c.input(0), target = c.input(1);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f16 && x.dtype() != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", x.dtype());
  if (target.dtype() != DType::i32 && target.dtype() != DType::i64)
    return Support::no("targets must be i32 or i64, got {}", target.dtype());
  if (x.rank() == 2 && target.rank() == 1 && x.max()[0] == target.max()[0]) return Support::yes();
  return Support::no("wants [n, classes] and [n], got {} and {}", x.max(), target.max());
}

/// Accepts a loss, or its gradient, of the logits' dtype or f32.
inline backend::Support accepts_loss(backend::TypeView logits, backend::TypeView loss) {
  using backend::Support;
  if (loss.rank() != 0) return Support::no("the loss must be a scalar, got {}", loss.max());
  if (loss.dtype() == DType::f32) return Support::yes();
  return shared::same_dtype(logits, loss);
}

/// Accepts the gradient of the logits as result 0 of `results`.
inline backend::Support accepts_slopes(const backend::OpCall& c, int64_t results) {
  using backend::Support;
  if (auto s = accepts_classes(c, 3, results); !s) return s;
  if (auto s = shared::same_dtype(c.input(0), c.output(0)); !s) return s;
  if (!std::ranges::equal(c.input(0).max(), c.output(0).max()))
    return Support::no("wants a gradient like the logits, got {}", c.output(0).max());
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  return accepts_loss(c.input(0), c.input(2));
}

/// The gradient of the logits from that of the loss, input 2, in output 0; and the loss, unless null.
backend::Outcome slopes_of_rows(const backend::Launch& l, double* loss);
/// A loss in the dtype of `to`.
void store_loss(backend::TensorView to, double loss);

/// The class of each row; rows of class `ignore_index` do not count.
class Targets {
 public:
  explicit Targets(const backend::Launch& l)
      : target_(l.input(1)),
        classes_(l.input(0).dim(1)),
        ignored_(l.call().attr("ignore_index").integer(-100)),
        summed_(l.call().attr("summed").integer(0) != 0) {}

  int64_t operator[](int64_t row) const {
    return target_.dtype() == DType::i32 ? target_.data<int32_t>()[row] : target_.data<int64_t>()[row];
  }
  bool counts(int64_t row) const { return (*this)[row] != ignored_; }

  /// Counts the rows that are not ignored in `n`; an error for a target that is no class.
  backend::Outcome count(int64_t& n) const {
    n = 0;
    for (int64_t r = 0; r < target_.size(); ++r) {
      if (!counts(r)) continue;
      if (const int64_t t = (*this)[r]; t < 0 || t >= classes_)
        return backend::Outcome::fail(WEFT_INVALID_ARGUMENT, "target {} of row {} is outside [0, {})", t, r,
                                      classes_);
      ++n;
    }
    return backend::Outcome::ok();
  }

  /// What the sum over `counted` rows is divided by.
  double divisor(int64_t counted) const { return summed_ ? 1 : static_cast<double>(counted); }

 private:
  backend::TensorView target_;
  int64_t classes_, ignored_;
  bool summed_;
};

}  // namespace weft::native
