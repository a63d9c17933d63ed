#include "ops/shared/gelu.h"
#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::GeluAttrs&) {
  if (!(in[1] == in[0]))
    return invalid("gelu_grad: x and dy must have one type, got {} and {}", text(in[0]), text(in[1]));
  return ir::infer_float_unary("gelu_grad", in);
}

// dx = dy (P + x P'), with 2 P = 1 + s(x). For s = erf(x / sqrt 2), 2 P' = sqrt(2 / pi) exp(-x^2 / 2); for
// s = tanh(u), 2 P' = (1 - s^2) u'. Beyond 40 the tails are 0 and 1 in every dtype, and up to there no power
// of x overflows: no 0 meets an infinity.
static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::GeluAttrs& a) {
  const auto x = in[0], near = b.minimum(b.maximum(x, -40), 40), square = b.mul(near, near);
  const auto s = ir::symmetric_cdf(b, near, a.approximate);
  const auto slope = a.approximate ? b.mul(b.sub(1, b.mul(s, s)),
                                           b.mul(b.add(b.mul(square, 3 * ir::kGeluCube), 1), ir::kGeluScale))
                                   : b.mul(b.exp(b.mul(square, -0.5)), ir::kGeluScale);
  const auto twice = b.add(b.add(s, 1), b.mul(x, slope));
  return b.mul(in[1], b.mul(twice, 0.5));
}

static constexpr ir::Op<ir::GeluAttrs> spec = {
    .name = "gelu_grad",
    .doc =
        "The gradient of gelu(x) from that of its result, `dy`.\n\n"
        "Shape    dy and the result as `x`.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics finite where `x` and `dy` are.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument when the two differ in shape or dtype.",
    .inputs = {"x", "dy"},
    .outputs = {"dx"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef gelu_grad = ir::define<spec>();

}  // namespace weft::ops
