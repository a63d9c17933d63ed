#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  WEFT_TRY(auto y, ir::infer_float_unary("linear", in));
  const auto& weight = in[1];
  if (y.rank() < 1 || weight.rank() != 2 || weight.dtype != y.dtype || !(weight.shape[1] == y.shape.back()))
    return invalid("linear: wants x [..., in] and weight [out, in] of one dtype, got {} and {}", text(y),
                   text(weight));
  if (in.has(2) && !(in[2].dtype == y.dtype && in[2].shape == Shape{weight.shape[0]}))
    return invalid("linear: wants bias [{}] of {}, got {}", weight.shape[0].text(), name(y.dtype),
                   text(in[2]));
  y.shape.back() = weight.shape[0];
  return y;
}

// x [..., n] as [rows, n], so that the product is one and not a batch of them.
static ir::Value as_rows(ir::Builder& b, ir::Value x) {
  Dim rows = 1;
  for (size_t i = 0; i + 1 < x.shape().size(); ++i) rows = rows * x.shape()[i];
  return b.reshape(x, {rows, x.shape().back()});
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  auto y = b.matmul(as_rows(b, in[0]), in[1], false, true);
  if (in.size() > 2 && in[2]) y = b.add(y, in[2]);
  Shape shape = in[0].shape();
  shape.back() = in[1].shape()[0];
  return b.reshape(y, shape);
}

// With x and dy as rows: dx = dy w, dw = dyᵀ x, dbias = sum of the rows of dy.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = as_rows(b, ctx.dout(0));
  ir::Grads g(3);
  if (ctx.wants(0)) g[0] = b.reshape(b.matmul(dy, ctx.in(1)), ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = b.matmul(dy, as_rows(b, ctx.in(0)), true, false);
  if (ctx.wants(2)) g[2] = b.sum_to(dy, ctx.in_type(2).shape);
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "linear",
    .doc =
        "x weightᵀ + bias: each row of `x` through one layer.\n\n"
        "Shape    x [..., in], weight [out, in], bias [out] or none -> [..., out].\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Grad     needs `x` and `weight`.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = {"x", "weight", "bias"},
    .n_optional = 1,
    .saves = ir::saves::input(0) | ir::saves::input(1),
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef linear = ir::define<spec>();

}  // namespace weft::ops
