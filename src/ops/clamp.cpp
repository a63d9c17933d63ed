#include <cmath>
#include <limits>

#include "base/element.h"
#include "ops/shared/rules.h"

namespace weft::ops {

static constexpr double kNone = std::numeric_limits<double>::infinity();

struct ClampAttrs {
  double min = -kNone;
  double max = kNone;
  static constexpr auto fields = ir::fields("min", &ClampAttrs::min, "max", &ClampAttrs::max);
};

static Result<TensorType> infer(ir::Types in, const ClampAttrs& a) {
  if (a.min != a.min || a.max != a.max)
    return invalid("clamp: bounds must be numbers, got {} and {}", a.min, a.max);
  if (!is_float(in[0].dtype))
    for (const double bound : {a.min, a.max})
      if (!std::isinf(bound) && !holds(in[0].dtype, bound)) return cannot_hold("clamp", in[0].dtype, bound);
  return ir::infer_unary("clamp", in);
}

// An infinite bound has no effect and is left out for integers. A finite bound beyond the range of a float
// dtype is treated as infinite, and one that underflows as zero.
static ir::Value bound(ir::Builder& b, double value, DType t) {
  if (is_float(t) && !may_stand_for(t, value))
    value = std::fabs(value) < 1 ? std::copysign(0, value) : std::copysign(kNone, value);
  if (!is_float(t) && std::isinf(value)) return ir::Value();
  return b.full(value, {}, t);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ClampAttrs& a) {
  auto y = in[0];
  if (const auto least = bound(b, a.min, y.dtype())) y = b.maximum(y, least);
  if (const auto most = bound(b, a.max, y.dtype())) y = b.minimum(y, most);
  return y;
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ClampAttrs& a) {
  const auto x = ctx.in(0);
  const auto inside = b.bit_and(b.one("less_equal", {bound(b, a.min, x.dtype()), x}),
                                b.one("less_equal", {x, bound(b, a.max, x.dtype())}));
  return {b.where(inside, ctx.dout(0), 0)};
}

static constexpr ir::Op<ClampAttrs> spec = {
    .name = "clamp",
    .doc =
        "The number in [min, max] that is nearest to `x`.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers. A NaN stays. Where min > max everything is max.\n"
        "Grad     needs `x`; dy within the bounds, themselves included, and 0 outside.\n"
        "Errors   invalid_argument for a bound that is NaN, and for a finite one that x's integers don't "
        "hold.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef clamp = ir::define<spec>();

}  // namespace weft::ops
