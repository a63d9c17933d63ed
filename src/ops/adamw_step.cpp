#include "ops/shared/rules.h"

namespace weft::ops {

struct AdamwStepAttrs {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  static constexpr auto fields =
      ir::fields("beta1", &AdamwStepAttrs::beta1, "beta2", &AdamwStepAttrs::beta2, "epsilon",
                 &AdamwStepAttrs::epsilon, "weight_decay", &AdamwStepAttrs::weight_decay);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const AdamwStepAttrs&) {
  const auto& p = in[0];
  if (!is_float(p.dtype) || !is_compute(p.dtype)) return invalid("adamw_step: wants floats, got {}", text(p));
  for (size_t i : {1, 2, 3})
    if (!(in[i] == p))
      return invalid("adamw_step: gradient and moments must be {}, got {}", text(p), text(in[i]));
  for (size_t i : {4, 5, 6})
    if (in[i].rank() != 0 || in[i].dtype != p.dtype)
      return invalid("adamw_step: rate and weights must be {} scalars, got {}", name(p.dtype), text(in[i]));
  return std::vector<TensorType>{p, p, p, in[5], in[6]};
}

// m and v are moving averages that began at zero; dividing by the sum of their weights, 1 - beta^t, takes
// that bias out. That sum is itself the moving average of ones: a state, so that a compiled step needs no
// number from the host.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const AdamwStepAttrs& a) {
  const auto param = in[0], g = in[1], rate = in[4];
  const auto average = [&](ir::Value old, ir::Builder::Operand now, double beta) {
    return b.add(b.mul(old, beta), b.mul(now, 1 - beta));
  };
  const auto m = average(in[2], g, a.beta1), v = average(in[3], b.mul(g, g), a.beta2);
  const auto wm = b.add(b.mul(in[5], a.beta1), 1 - a.beta1), wv = b.add(b.mul(in[6], a.beta2), 1 - a.beta2);
  const auto scale = b.add(b.sqrt(b.div(v, wv)), a.epsilon);
  const auto decayed = b.mul(param, b.sub(1, b.mul(rate, a.weight_decay)));
  return {b.sub(decayed, b.mul(rate, b.div(b.div(m, wm), scale))), m, v, wm, wv};
}

static constexpr ir::Op<AdamwStepAttrs> spec = {
    .name = "adamw_step",
    .doc =
        "One AdamW update of a parameter and its moments, in place.\n\n"
        "Shape    parameter, gradient and moments alike; rate and the weights, which begin at 0, have rank "
        "0.\n"
        "DType    one float dtype.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Loshchilov and Hutter, Decoupled weight decay regularization (ICLR 2019), algorithm 2.",
    .inputs = {"parameter", "gradient", "mean", "square", "rate", "mean_weight", "square_weight"},
    .outputs = {"new_parameter", "new_mean", "new_square", "new_mean_weight", "new_square_weight"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}, ir::UpdateRule{1, 2}, ir::UpdateRule{2, 3}, ir::UpdateRule{3, 5},
                ir::UpdateRule{4, 6}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef adamw_step = ir::define<spec>();

}  // namespace weft::ops
