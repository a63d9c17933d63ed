#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  if (in[0].dtype != DType::boolean) return invalid("where: condition must be bool, got {}", text(in[0]));
  if (in[1].dtype != in[2].dtype)
    return invalid("where: both choices must have one dtype, got {} and {}", text(in[1]), text(in[2]));
  WEFT_TRY(const Shape choices, ir::broadcast_shapes("where", in[1].shape, in[2].shape));
  WEFT_TRY(Shape shape, ir::broadcast_shapes("where", in[0].shape, choices));
  return TensorType{in[1].dtype, std::move(shape)};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  ir::Grads g(3);
  if (ctx.wants(1)) g[1] = b.sum_to(b.where(ctx.in(0), dy, 0), ctx.in_type(1).shape);
  if (ctx.wants(2)) g[2] = b.sum_to(b.where(ctx.in(0), 0, dy), ctx.in_type(2).shape);
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "where",
    .doc =
        "Takes `a` where the condition is true and `b` elsewhere.\n\n"
        "Shape    all three broadcast.\n"
        "DType    condition bool; a and b one dtype, any.\n"
        "Grad     needs the condition.",
    .inputs = {"condition", "a", "b"},
    .traits = ir::Trait::elementwise | ir::Trait::movement,
    .saves = ir::saves::input(0),
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef where = ir::define<spec>();

}  // namespace weft::ops
