#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::IndexAttrs& a) {
  WEFT_TRY(const Shape shape, ir::gathered_shape("scatter_add", in[0], in[1], a));
  if (in[2].dtype != in[0].dtype || !(in[2].shape == shape))
    return invalid("scatter_add: updates must be {}, got {}", text(TensorType{in[0].dtype, shape}),
                   text(in[2]));
  if (!is_compute(in[0].dtype) || in[0].dtype == DType::boolean)
    return invalid("scatter_add: wants a number type, got {}", text(in[0]));
  return in[0];
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::IndexAttrs& a) {
  const auto dy = ctx.dout(0);
  ir::Grads g(3);
  g[0] = dy;
  if (ctx.wants(2)) g[2] = b.gather(dy, ctx.in(1), a.axis, a.batch);
  return g;
}

static constexpr ir::Op<ir::IndexAttrs> spec = {
    .name = "scatter_add",
    .doc =
        "Adds slices of `updates` to `x` along `axis`, each at its index: what gather takes, it gives "
        "back.\n\n"
        "Shape    same as `x`; updates as gather(x, index) would be.\n"
        "DType    x and updates one number type, index i32 or i64.\n"
        "Numerics equal indices are added in their order, on every backend.\n"
        "Grad     needs the index.\n"
        "Errors   invalid_argument for shapes and dtypes; a device error for an index outside the axis;\n"
        "         compiled text can't report one and leaves that update out.",
    .inputs = {"x", "index", "updates"},
    .saves = ir::saves::input(1),
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef scatter_add = ir::define<spec>();

}  // namespace weft::ops
