#include "ops/shared/rules.h"

namespace weft::ops {

struct BroadcastAttrs {
  Shape shape;
  static constexpr auto fields = ir::fields("shape", &BroadcastAttrs::shape);
};

static Result<TensorType> infer(ir::Types in, const BroadcastAttrs& a) {
  WEFT_TRY(const Shape joined, ir::broadcast_shapes("broadcast", in[0].shape, a.shape));
  if (!(joined == a.shape))
    return invalid("broadcast: {} does not broadcast to {}", text(in[0]), text(a.shape));
  return TensorType{in[0].dtype, a.shape};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const BroadcastAttrs&) {
  return {b.sum_to(ctx.dout(0), ctx.in_type(0).shape)};
}

static constexpr ir::Op<BroadcastAttrs> spec = {
    .name = "broadcast",
    .doc =
        "Repeats `x` along new leading axes and axes of size 1, up to `shape`.\n\n"
        "Shape    `shape`, by NumPy's rule.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when `x` does not broadcast to `shape`.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef broadcast = ir::define<spec>();

}  // namespace weft::ops
