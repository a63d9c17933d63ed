#include "ir/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &x = in[0], &target = in[1];
  if (!is_float(x.dtype) || !is_compute(x.dtype) || x.rank() != 2)
    return invalid("cross_entropy: logits must be float[n, classes], got {}", text(x));
  if ((target.dtype != DType::i32 && target.dtype != DType::i64) || !(target.shape == Shape{x.shape[0]}))
    return invalid("cross_entropy: target must be i32 or i64 [{}], got {}", x.shape[0].text(), text(target));
  return TensorType{x.dtype, {}};
}

// mean over rows of log(sum(exp(x))) - x[target], with the row maximum taken out first.
static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto x = in[0], target = in[1];
  const Dim n = x.shape()[0];
  const auto shifted = b.sub(x, b.max(x, 1));
  const auto normal = b.reshape(b.log(b.sum(b.exp(shifted), 1)), {n});
  const auto loss = b.sub(normal, b.gather(shifted, target, 1, 1));
  return b.div(b.sum_all(loss), b.full(1, {}, x.dtype(), n));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.one("cross_entropy_grad", {ctx.in(0), ctx.in(1), ctx.dout(0)}), ir::Value()};
}

static constexpr ir::Op<> spec = {
    .name = "cross_entropy",
    .doc =
        "Mean negative log-likelihood of the target classes, from logits.\n\n"
        "Shape    logits [n, classes], target [n]; the result has rank 0.\n"
        "DType    logits float, target i32 or i64.\n"
        "Numerics subtracts the row maximum first, so no finite logit overflows.\n"
        "Grad     needs both inputs; for the logits only.\n"
        "Errors   invalid_argument for shapes and dtypes; a device error for a target outside [0, classes);\n"
        "         compiled text can't report one and gives NaN.",
    .inputs = {"logits", "target"},
    .outputs = {"loss"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef cross_entropy = ir::define<spec>();

}  // namespace weft::ops
