#include "ops/shared/pieces.h"

namespace weft::ops {

struct PermuteAttrs {
  Shape axes;
  static constexpr auto fields = ir::fields("axes", &PermuteAttrs::axes);
};

// The axis of x for each axis of the result.
static Result<SmallVector<int64_t, 8>> order(const Shape& axes, int64_t rank) {
  SmallVector<int64_t, 8> from;
  for (int64_t d = rank; axes.empty() && d-- > 0;) from.push_back(d);
  SmallVector<bool, 8> seen(static_cast<size_t>(rank), axes.empty());
  for (const Dim d : axes) {
    if (!d.is_const()) return invalid("permute: an axis must be a number, got {}", d.text());
    WEFT_TRY(const int64_t axis, ir::resolve_axis("permute", d.value(), rank));
    if (seen[static_cast<size_t>(axis)])
      return invalid("permute: axis {} stands twice in {}", axis, text(axes));
    seen[static_cast<size_t>(axis)] = true;
    from.push_back(axis);
  }
  if (static_cast<int64_t>(from.size()) != rank)
    return invalid("permute: axes must name each of {} axes, got {}", rank, text(axes));
  return from;
}

static Result<TensorType> infer(ir::Types in, const PermuteAttrs& a) {
  WEFT_TRY(const auto from, order(a.axes, in[0].rank()));
  TensorType y{in[0].dtype, {}};
  for (const int64_t axis : from) y.shape.push_back(in[0].shape[static_cast<size_t>(axis)]);
  return y;
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const PermuteAttrs& a) {
  const auto from = order(a.axes, ctx.in_type(0).rank()).value();  // infer has checked them
  Shape back(from.size(), Dim(0));
  for (size_t d = 0; d < from.size(); ++d) back[static_cast<size_t>(from[d])] = Dim(d);
  return {b.one("permute", {ctx.dout(0)}, {{"axes", back}})};
}

static constexpr ir::Op<PermuteAttrs> spec = {
    .name = "permute",
    .doc =
        "The axes of `x` in another order: axis d of the result is axis `axes`[d] of `x`.\n\n"
        "Shape    that of `x`, reordered; all axes in reverse when the list is empty.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument unless `axes` names each axis once.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef permute = ir::define<spec>();

}  // namespace weft::ops
