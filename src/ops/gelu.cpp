#include <numbers>

#include "ir/rules.h"

namespace weft::ops {

struct GeluAttrs {
  bool approximate = false;
  static constexpr auto fields = ir::fields("approximate", &GeluAttrs::approximate);
};

// The approximation is tanh(kScale (x + kCube x^3)).
static constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCube = 0.044715;

static Result<TensorType> infer(ir::Types in, const GeluAttrs&) { return ir::infer_float_unary("gelu", in); }

// 2 P(X < x) - 1 for a normal X, or what is taken for it.
static ir::Value symmetric_cdf(ir::Builder& b, ir::Value x, bool approximate) {
  if (!approximate) return b.erf(b.mul(x, 1 / std::numbers::sqrt2));
  return b.tanh(b.mul(b.mul(x, b.add(b.mul(b.mul(x, x), kCube), 1)), kScale));
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const GeluAttrs& a) {
  return b.mul(b.mul(in[0], 0.5), b.add(symmetric_cdf(b, in[0], a.approximate), 1));
}

// dx = dy (P + x P'), with 2 P = 1 + s(x). For s = erf(x / sqrt 2), 2 P' = sqrt(2 / pi) exp(-x^2 / 2); for
// s = tanh(u), 2 P' = (1 - s^2) u'. Beyond 40 the tails are 0 and 1 in every dtype, and up to there no power
// of x overflows: no 0 meets an infinity.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const GeluAttrs& a) {
  const auto x = ctx.in(0), near = b.minimum(b.maximum(x, -40), 40), square = b.mul(near, near);
  const auto s = symmetric_cdf(b, near, a.approximate);
  const auto slope = a.approximate
                         ? b.mul(b.sub(1, b.mul(s, s)), b.mul(b.add(b.mul(square, 3 * kCube), 1), kScale))
                         : b.mul(b.exp(b.mul(square, -0.5)), kScale);
  const auto twice = b.add(b.add(s, 1), b.mul(x, slope));
  return {b.mul(ctx.dout(0), b.mul(twice, 0.5))};
}

static constexpr ir::Op<GeluAttrs> spec = {
    .name = "gelu",
    .doc =
        "x P(X < x) for a normally distributed X.\n\n"
        "That is x (1 + erf(x / sqrt(2))) / 2, or with `approximate`\n"
        "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics finite for every finite `x`; NaN at -inf, as in PyTorch.\n"
        "Grad     needs `x`.\n"
        "Source   Hendrycks and Gimpel, Gaussian error linear units (2016).",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef gelu = ir::define<spec>();

}  // namespace weft::ops
