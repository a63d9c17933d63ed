#include "ops/shared/rules.h"

namespace weft::ops {

struct SgdStepAttrs {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  static constexpr auto fields = ir::fields("momentum", &SgdStepAttrs::momentum, "weight_decay",
                                            &SgdStepAttrs::weight_decay, "nesterov", &SgdStepAttrs::nesterov);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const SgdStepAttrs&) {
  const auto& p = in[0];
  if (!is_float(p.dtype) || !is_compute(p.dtype)) return invalid("sgd_step: wants floats, got {}", text(p));
  for (size_t i : {1, 2})
    if (!(in[i] == p))
      return invalid("sgd_step: gradient and velocity must be {}, got {}", text(p), text(in[i]));
  if (in[3].rank() != 0 || in[3].dtype != p.dtype)
    return invalid("sgd_step: rate must be a {} scalar, got {}", name(p.dtype), text(in[3]));
  return std::vector<TensorType>{p, p};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const SgdStepAttrs& a) {
  const auto p = in[0], rate = in[3];
  const auto g = b.add(in[1], b.mul(p, a.weight_decay));
  const auto velocity = b.add(b.mul(in[2], a.momentum), g);
  const auto step = a.nesterov ? b.add(g, b.mul(velocity, a.momentum)) : velocity;
  return {b.sub(p, b.mul(rate, step)), velocity};
}

static constexpr ir::Op<SgdStepAttrs> spec = {
    .name = "sgd_step",
    .doc =
        "One step of gradient descent with momentum, in place.\n\n"
        "Shape    parameter, gradient and velocity alike; the velocity begins at 0. rate has rank 0.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics g = gradient + weight_decay parameter; velocity = momentum velocity + g; the step is the "
        "velocity, or\n"
        "         g + momentum velocity with `nesterov`.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Sutskever et al., On the importance of initialization and momentum (ICML 2013).",
    .inputs = {"parameter", "gradient", "velocity", "rate"},
    .outputs = {"new_parameter", "new_velocity"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}, ir::UpdateRule{1, 2}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef sgd_step = ir::define<spec>();

}  // namespace weft::ops
