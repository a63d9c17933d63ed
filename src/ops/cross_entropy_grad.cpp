#include "ir/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &x = in[0], &target = in[1];
  if (!is_float(x.dtype) || !is_compute(x.dtype) || x.rank() != 2)
    return invalid("cross_entropy_grad: logits must be float[n, classes], got {}", text(x));
  if ((target.dtype != DType::i32 && target.dtype != DType::i64) || !(target.shape == Shape{x.shape[0]}))
    return invalid("cross_entropy_grad: target must be i32 or i64 [{}], got {}", x.shape[0].text(),
                   text(target));
  if (!(in[2] == TensorType{x.dtype, {}}))
    return invalid("cross_entropy_grad: dloss must be a {} scalar, got {}", name(x.dtype), text(in[2]));
  return x;
}

// (softmax(x) - one_hot(target)) dloss / n
static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto x = in[0], target = in[1];
  const Dim n = x.shape()[0];
  const auto scale = b.div(in[2], b.full(1, {}, x.dtype(), n));
  const auto p = b.mul(b.one("softmax", {x}, {{"axis", int64_t{1}}}), scale);
  return b.scatter_add(p, target, b.broadcast(b.neg(scale), {n}), 1, 1);
}

static constexpr ir::Op<> spec = {
    .name = "cross_entropy_grad",
    .doc =
        "The gradient of cross_entropy(logits, target) for the logits, from that of the loss.\n\n"
        "Shape    logits [n, classes], target [n], dloss rank 0; the result as the logits.\n"
        "DType    logits and dloss one float dtype, target i32 or i64.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for shapes and dtypes; a device error for a target outside [0, classes);\n"
        "         compiled text can't report one and leaves it out.",
    .inputs = {"logits", "target", "dloss"},
    .outputs = {"dlogits"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef cross_entropy_grad = ir::define<spec>();

}  // namespace weft::ops
