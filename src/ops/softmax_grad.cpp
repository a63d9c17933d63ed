#include "ops/shared/softmax.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::SoftmaxAttrs& a) {
  if (!(in[1] == in[0]))
    return invalid("softmax_grad: y and dy must have one type, got {} and {}", text(in[0]), text(in[1]));
  WEFT_TRY([[maybe_unused]] const int64_t axis, ir::resolve_axis("softmax_grad", a.axis, in[0].rank()));
  return ir::infer_float_unary("softmax_grad", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::SoftmaxAttrs& a) {
  const auto y = in[0], dy = in[1];
  return b.mul(y, b.sub(dy, b.sum(b.mul(y, dy), a.axis)));
}

static constexpr ir::Op<ir::SoftmaxAttrs> spec = {
    .name = "softmax_grad",
    .doc =
        "The gradient of y = softmax(x) from that of `y`: dx = y (dy - sum(y dy)).\n\n"
        "Shape    dy and the result as `y`; sums run along `axis`.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank), or y and dy differ in shape or "
        "dtype.",
    .inputs = {"y", "dy"},
    .outputs = {"dx"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef softmax_grad = ir::define<spec>();

}  // namespace weft::ops
