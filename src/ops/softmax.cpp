#include "ops/shared/softmax.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::SoftmaxAttrs& a) {
  WEFT_TRY([[maybe_unused]] const int64_t axis, ir::resolve_axis("softmax", a.axis, in[0].rank()));
  return ir::infer_float_unary("softmax", in);
}

// Defines the op: backends without a kernel run this, and kernels are tested against it.
static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::SoftmaxAttrs& a) {
  const auto e = b.exp(b.sub(in[0], b.max(in[0], a.axis)));
  return b.div(e, b.sum(e, a.axis));
}

// Needs the output only, so the input can be freed.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::SoftmaxAttrs& a) {
  return {b.one("softmax_grad", {ctx.out(0), ctx.dout(0)}, {{"axis", a.axis}})};
}

static constexpr ir::Op<ir::SoftmaxAttrs> spec = {
    .name = "softmax",
    .doc =
        "Normalizes `x` along `axis` so that every slice is non-negative and sums to one.\n\n"
        "Shape    same as `x`. A slice of length zero stays empty.\n"
        "DType    same as `x`; f16 and bf16 accumulate in f32.\n"
        "Numerics subtracts the slice maximum first, so no finite input overflows.\n"
        "Grad     needs the output only; `x` may be freed.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank).",
    .inputs = {"x"},
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef softmax = ir::define<spec>();

}  // namespace weft::ops
