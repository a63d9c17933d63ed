#include "ops/shared/rules.h"

namespace weft::ops {

struct GlobalNormClipAttrs {
  double max_norm = 1;
  double epsilon = 1e-6;
  static constexpr auto fields =
      ir::fields("max_norm", &GlobalNormClipAttrs::max_norm, "epsilon", &GlobalNormClipAttrs::epsilon);
};

static Result<TensorType> infer(ir::Types in, const GlobalNormClipAttrs& a) {
  const DType wide = in[0].dtype == DType::f64 ? DType::f64 : DType::f32;
  if (!(a.max_norm > 0)) return invalid("global_norm_clip: max_norm must be positive, got {}", a.max_norm);
  if (in[1].rank() != 0 || in[1].dtype != wide)
    return invalid("global_norm_clip: norm must be a {} scalar, got {}", name(wide), text(in[1]));
  return ir::infer_float_unary("global_norm_clip", in);
}

// A NaN norm must not count as a small one.
static ir::Value decompose(ir::Builder& b, ir::Values in, const GlobalNormClipAttrs& a) {
  const auto scale = b.div(a.max_norm, b.add(in[1], a.epsilon));
  return b.mul(in[0], b.where(b.less(1, scale), 1, scale));
}

static constexpr ir::Op<GlobalNormClipAttrs> spec = {
    .name = "global_norm_clip",
    .doc =
        "Scales one of several gradients by max_norm / norm where their norm is larger; weft/lists.h takes "
        "all "
        "of them.\n\n"
        "Shape    same as `x`; norm, that of all gradients together, has rank 0.\n"
        "DType    x float; norm f64 where x is, f32 elsewhere: squares of halves soon leave their range.\n"
        "Numerics the factor is min(1, max_norm / (norm + epsilon)).\n"
        "Grad     by its decomposition; needs both inputs.\n"
        "Errors   invalid_argument for dtypes, and unless max_norm > 0.\n"
        "Source   Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013).",
    .inputs = {"x", "norm"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef global_norm_clip = ir::define<spec>();

}  // namespace weft::ops
