#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::IndexAttrs& a) {
  WEFT_TRY(Shape shape, ir::gathered_shape("gather", in[0], in[1], a));
  return TensorType{in[0].dtype, std::move(shape)};
}

// The gradient of each picked element is added at its source.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::IndexAttrs& a) {
  const auto zeros = b.full(0, ctx.in_type(0).shape, ctx.in_type(0).dtype);
  return {b.scatter_add(zeros, ctx.in(1), ctx.dout(0), a.axis, a.batch), ir::Value()};
}

static constexpr ir::Op<ir::IndexAttrs> spec = {
    .name = "gather",
    .doc =
        "Picks slices of `x` along `axis` by number.\n\n"
        "Shape    x[:axis] + index[batch:] + x[axis+1:]; the first `batch` axes of x and index run "
        "together.\n"
        "         gather(table[v, d], ids[n]) is [n, d]; gather(x[n, c], label[n], axis=1, batch=1) is [n].\n"
        "DType    x any, index i32 or i64.\n"
        "Grad     needs the index; of equal indices, gradients add up.\n"
        "Errors   invalid_argument for axes and dtypes; a device error for an index outside the axis;\n"
        "         compiled text can't report one and gives NaN, or the smallest integer.",
    .inputs = {"x", "index"},
    .traits = ir::Trait::movement,
    .saves = ir::saves::input(1),
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef gather = ir::define<spec>();

}  // namespace weft::ops
