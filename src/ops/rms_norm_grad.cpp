#include "ops/shared/rms_norm.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::RmsNormAttrs&) {
  const auto &x = in[0], &weight = in[2];
  if (!is_float(x.dtype) || !is_compute(x.dtype) || !(in[1] == x))
    return invalid("rms_norm_grad: wants x and dy of one float type, got {} and {}", text(x), text(in[1]));
  if (x.rank() < 1 || !(weight == TensorType{x.dtype, {x.shape.back()}}))
    return invalid("rms_norm_grad: wants x [..., n] and weight [n] of one dtype, got {} and {}", text(x),
                   text(weight));
  return std::vector<TensorType>{x, weight};
}

// With r = scale, h = x r and g = dy weight: dx = r (g - h mean(g h)), dweight = sum over rows of dy h.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::RmsNormAttrs& a) {
  const auto x = in[0], dy = in[1], r = ir::rms_scale(b, x, a.epsilon), h = b.mul(x, r), g = b.mul(dy, in[2]);
  const Shape row{x.shape().back()};
  return {b.mul(r, b.sub(g, b.mul(h, ir::row_mean(b, b.mul(g, h))))), b.sum_to(b.mul(dy, h), row)};
}

static constexpr ir::Op<ir::RmsNormAttrs> spec = {
    .name = "rms_norm_grad",
    .doc =
        "The gradients of rms_norm(x, weight) for its operands, from that of its result, `dy`.\n\n"
        "Shape    x and dy [..., n], weight [n]; dx as `x`, dweight as `weight`.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = {"x", "dy", "weight"},
    .outputs = {"dx", "dweight"},
    .n_public = 2,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef rms_norm_grad = ir::define<spec>();

}  // namespace weft::ops
