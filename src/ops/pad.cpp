#include "base/element.h"
#include "ops/shared/rules.h"

namespace weft::ops {

struct PadAttrs {
  int64_t axis = 0;
  Dim before = 0;
  Dim after = 0;
  double value = 0;
  static constexpr auto fields = ir::fields("axis", &PadAttrs::axis, "before", &PadAttrs::before, "after",
                                            &PadAttrs::after, "value", &PadAttrs::value);
};

static Result<TensorType> infer(ir::Types in, const PadAttrs& a) {
  WEFT_TRY(const int64_t axis, ir::resolve_axis("pad", a.axis, in[0].rank()));
  if (a.before.min() < 0 || a.after.min() < 0)
    return invalid("pad: before and after must not be negative, got {} and {}", a.before.text(),
                   a.after.text());
  if (!may_stand_for(in[0].dtype, a.value)) return cannot_hold("pad", in[0].dtype, a.value);
  TensorType out = in[0];
  Dim& size = out.shape[static_cast<size_t>(axis)];
  size = a.before + size + a.after;
  return out;
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const PadAttrs& a) {
  const auto& x = ctx.in_type(0).shape;
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.size()) : a.axis);
  return {b.one("slice", {ctx.dout(0)},
                {{"axis", a.axis}, {"start", Shape{a.before}}, {"stop", Shape{a.before + x[axis]}}})};
}

static constexpr ir::Op<PadAttrs> spec = {
    .name = "pad",
    .doc =
        "Puts elements of `value` before and after those of `x`, along one axis.\n\n"
        "Shape    `axis` grows by before + after.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when before or after is negative, and for a value that x's dtype\n"
        "         does not hold.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef pad = ir::define<spec>();

}  // namespace weft::ops
