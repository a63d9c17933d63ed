#include "ir/rules.h"

namespace weft::ops {

struct ReshapeAttrs {
  Shape shape;
  static constexpr auto fields = ir::fields("shape", &ReshapeAttrs::shape);
};

static Result<TensorType> infer(ir::Types in, const ReshapeAttrs& a) {
  const Dim have = element_count(in[0].shape), want = element_count(a.shape);
  if (!(have == want))
    return invalid("reshape: {} has {} elements, {} has {}", text(in[0]), have.text(), text(a.shape),
                   want.text());
  return TensorType{in[0].dtype, a.shape};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ReshapeAttrs&) {
  return {b.reshape(ctx.dout(0), ctx.in_type(0).shape)};
}

static constexpr ir::Op<ReshapeAttrs> spec = {
    .name = "reshape",
    .doc =
        "The same elements, in row-major order, under another shape.\n\n"
        "Shape    `shape`; it has as many elements as `x`.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when the element counts differ.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef reshape = ir::define<spec>();

}  // namespace weft::ops
