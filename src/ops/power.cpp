#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  WEFT_TRY([[maybe_unused]] const auto a, ir::infer_float_unary("power", in));
  return ir::infer_binary("power", in);
}

// da = dy b a^(b-1), db = dy a^b log(a). The output is not used: in halves it may overflow where the gradient
// does not. For a = 0 and b >= 0, a^b is constant in b, so log must not get that 0, nor the first product 0
// times infinity.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto x = ctx.in(0), e = ctx.in(1), dy = ctx.dout(0), x_is_0 = b.equal(x, 0);
  ir::Grads g(2);
  if (ctx.wants(0)) {
    const auto nothing = b.bit_and(x_is_0, b.equal(e, 0));
    const auto slope = b.mul(e, b.power(x, b.where(nothing, 0, b.sub(e, 1))));
    g[0] = b.sum_to(b.mul(dy, slope), ctx.in_type(0).shape);
  }
  if (ctx.wants(1)) {
    const auto flat = b.bit_and(x_is_0, b.one("less_equal", {b.zeros_like(e), e}));
    const auto slope = b.mul(b.power(x, e), b.log(b.where(flat, 1, x)));
    g[1] = b.sum_to(b.mul(dy, slope), ctx.in_type(1).shape);
  }
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "power",
    .doc =
        "`a` to the power of `b`.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one float dtype for both.\n"
        "Numerics as C's pow: x^0 is 1 for every x, 0^b is infinite for b < 0, and a negative number to a "
        "power\n"
        "         that is not whole is NaN.\n"
        "Grad     needs both inputs. At 0^0 both are 0; that of `b` is NaN for a < 0.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef power = ir::define<spec>();

}  // namespace weft::ops
