#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::LayerNormAttrs& a) {
  const auto& x = in[0];
  if (!is_float(x.dtype) || !is_compute(x.dtype) || !(in[1] == x))
    return invalid("layer_norm_grad: wants x and dy of one float type, got {} and {}", text(x), text(in[1]));
  if (a.trailing < 1 || a.trailing > x.rank())
    return invalid("layer_norm_grad: trailing must be in [1, {}], got {}", x.rank(), a.trailing);
  const TensorType row{x.dtype, Shape(x.shape.end() - a.trailing, x.shape.end())};
  if (in.has(2) && !(in[2] == row))
    return invalid("layer_norm_grad: weight must be {}, got {}", text(row), text(in[2]));
  return std::vector<TensorType>{x, row, row};
}

// With h the normalized x and g = dy weight: dx is that of h, from g; dweight and dbias are the sums over
// rows of dy h and dy.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::LayerNormAttrs& a) {
  const auto axes = ir::last_axes(a);
  const auto x = in[0], dy = in[1];
  const Shape row(x.shape().end() - a.trailing, x.shape().end());
  const auto n = ir::normalize(b, x, axes, a.epsilon);
  const auto g = in[2] ? b.mul(dy, in[2]) : dy;
  return {ir::normalize_grad(b, n, g, axes), b.sum_to(b.mul(dy, n.h), row), b.sum_to(dy, row)};
}

static constexpr ir::Op<ir::LayerNormAttrs> spec = {
    .name = "layer_norm_grad",
    .doc =
        "The gradients of layer_norm(x, weight, bias) for its operands, from that of its result, `dy`.\n\n"
        "Shape    dx as `x`, dweight and dbias as its last `trailing` axes; no weight stands for ones.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = {"x", "dy", "weight"},
    .outputs = {"dx", "dweight", "dbias"},
    .n_optional = 1,
    .n_public = 3,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef layer_norm_grad = ir::define<spec>();

}  // namespace weft::ops
