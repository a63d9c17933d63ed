#include <limits>

#include "ir/rules.h"

namespace weft::ops {

struct ClampAttrs {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  static constexpr auto fields = ir::fields("min", &ClampAttrs::min, "max", &ClampAttrs::max);
};

static Result<TensorType> infer(ir::Types in, const ClampAttrs& a) {
  if (a.min != a.min || a.max != a.max)
    return invalid("clamp: bounds must be numbers, got {} and {}", a.min, a.max);
  return ir::infer_unary("clamp", in);
}

// An infinite bound becomes the least or largest integer in an integer dtype, as any number that is too
// large.
static ir::Value decompose(ir::Builder& b, ir::Values in, const ClampAttrs& a) {
  return b.minimum(b.maximum(in[0], a.min), a.max);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ClampAttrs& a) {
  const auto x = ctx.in(0);
  const auto bound = [&](double value) { return b.full(value, {}, x.dtype()); };
  const auto inside =
      b.bit_and(b.one("less_equal", {bound(a.min), x}), b.one("less_equal", {x, bound(a.max)}));
  return {b.where(inside, ctx.dout(0), 0)};
}

static constexpr ir::Op<ClampAttrs> spec = {
    .name = "clamp",
    .doc =
        "The number in [min, max] that is nearest to `x`.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers. A NaN stays. Where min > max everything is max.\n"
        "Grad     needs `x`; dy within the bounds, themselves included, and 0 outside.\n"
        "Errors   invalid_argument for a bound that is NaN.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef clamp = ir::define<spec>();

}  // namespace weft::ops
