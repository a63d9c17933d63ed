#include "ops/shared/rules.h"

namespace weft::ops {

struct LogSoftmaxAttrs {
  int64_t axis = -1;
  static constexpr auto fields = ir::fields("axis", &LogSoftmaxAttrs::axis);
};

static Result<TensorType> infer(ir::Types in, const LogSoftmaxAttrs& a) {
  WEFT_TRY([[maybe_unused]] const int64_t axis, ir::resolve_axis("log_softmax", a.axis, in[0].rank()));
  return ir::infer_float_unary("log_softmax", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const LogSoftmaxAttrs& a) {
  const auto shifted = b.sub(in[0], b.max(in[0], a.axis));
  return b.sub(shifted, b.log(b.sum(b.exp(shifted), a.axis)));
}

// dx = dy - exp(y) sum(dy)
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const LogSoftmaxAttrs& a) {
  const auto dy = ctx.dout(0);
  return {b.sub(dy, b.mul(b.exp(ctx.out(0)), b.sum(dy, a.axis)))};
}

static constexpr ir::Op<LogSoftmaxAttrs> spec = {
    .name = "log_softmax",
    .doc =
        "The logarithm of softmax along `axis`.\n\n"
        "Shape    same as `x`. A slice of length zero stays empty.\n"
        "DType    float; f16 and bf16 compute in f32.\n"
        "Numerics subtracts the slice maximum first, so no finite input overflows; a probability too small "
        "for "
        "the dtype\n"
        "         still has its logarithm.\n"
        "Grad     needs the output only; `x` may be freed.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank).",
    .inputs = {"x"},
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef log_softmax = ir::define<spec>();

}  // namespace weft::ops
