#include "ops/shared/pieces.h"

namespace weft::ops {

struct BatchNormAttrs {
  double epsilon = 1e-5;
  static constexpr auto fields = ir::fields("epsilon", &BatchNormAttrs::epsilon);
};

static Result<TensorType> infer(ir::Types in, const BatchNormAttrs&) {
  return ir::infer_channels("batch_norm", in, {"x", "mean", "variance", "weight", "bias"});
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const BatchNormAttrs& a) {
  const auto shape = ir::channel_shape(in[0].shape());
  const auto scale = b.div(1, b.sqrt(b.add(in[2], a.epsilon)));
  const auto h = b.mul(b.sub(in[0], b.reshape(in[1], shape)), b.reshape(scale, shape));
  return ir::affine(b, h, in[3], in[4], shape);
}

static constexpr ir::Op<BatchNormAttrs> spec = {
    .name = "batch_norm",
    .doc =
        "Normalizes each channel by statistics that are given, then scales and shifts it: batch norm after "
        "training.\n\n"
        "Shape    same as `x` [n, channels, ...]; all others [channels].\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Grad     by its decomposition; needs all inputs.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Ioffe and Szegedy, Batch normalization (ICML 2015).",
    .inputs = {"x", "mean", "variance", "weight", "bias"},
    .n_optional = 2,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef batch_norm = ir::define<spec>();

}  // namespace weft::ops
